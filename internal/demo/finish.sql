-- After the rows: indexes for the joins below, and sequences that start behind the rows.
CREATE INDEX products_brand_id ON public.products (brand_id);
CREATE INDEX reviews_product_id ON public.reviews (product_id);
CREATE INDEX product_categories_category_id ON public.product_categories (category_id);

SELECT setval('public.brands_id_seq', (SELECT max(id) FROM public.brands));
SELECT setval('public.products_id_seq', (SELECT max(id) FROM public.products));
SELECT setval('public.reviews_id_seq', (SELECT max(id) FROM public.reviews));
SELECT setval('public.categories_id_seq', (SELECT max(id) FROM public.categories));

ANALYZE public.products, public.brands, public.countries, public.reviews, public.categories, public.product_categories;
