-- What every document of the view product_search has to be: id and document.
SELECT p.id::text,
       json_build_object(
           'id', p.id,
           'name', p.name,
           'description', p.description,
           'price', p.price,
           'updated_at', (to_json(p.updated_at AT TIME ZONE 'UTC') #>> '{}') || 'Z',
           'brand', (
               SELECT json_build_object('id', b.id, 'name', b.name, 'country', (
                          SELECT json_build_object('code', c.code, 'name', c.name)
                            FROM public.countries c WHERE c.code = b.country_code))
                 FROM public.brands b WHERE b.id = p.brand_id),
           'reviews', coalesce((
               SELECT json_agg(json_build_object(
                          'id', r.id, 'rating', r.rating, 'title', r.title,
                          'created_at', (to_json(r.created_at AT TIME ZONE 'UTC') #>> '{}') || 'Z')
                          ORDER BY r.created_at DESC NULLS LAST, r.id DESC)
                 FROM (SELECT * FROM public.reviews
                        WHERE product_id = p.id AND approved
                        ORDER BY created_at DESC NULLS LAST, id DESC LIMIT 10) r), '[]'),
           'categories', coalesce((
               SELECT json_agg(json_build_object('id', c.id, 'name', c.name) ORDER BY c.name COLLATE "C", c.id)
                 FROM public.product_categories pc JOIN public.categories c ON c.id = pc.category_id
                WHERE pc.product_id = p.id), '[]'),
           'review_count', (SELECT count(*) FROM public.reviews r WHERE r.product_id = p.id AND r.approved),
           'avg_rating', (SELECT round(avg(r.rating), 2) FROM public.reviews r WHERE r.product_id = p.id AND r.approved)
       )::text
  FROM public.products p
 WHERE p.status <> 'draft'
