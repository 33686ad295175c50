-- What the view has to hold: an id and the document, both as text.
SELECT replace(replace(p.name, '\', '\\'), '|', '\|'),
  json_build_object(
    'name', p.name, 'version', p.version, 'summary', p.summary, 'homepage', p.homepage, 'priority', p.priority, 'installed_size', p.installed_size,
    'maintainer', (SELECT json_build_object('email', m.email, 'name', m.name) FROM maintainers m WHERE m.email = p.maintainer),
    'section', (SELECT json_build_object('name', s.name, 'area', s.area) FROM sections s WHERE s.name = p.section),
    'tags', COALESCE((SELECT json_agg(json_build_object('name', t.name, 'facet', t.facet) ORDER BY t.name COLLATE "C")
      FROM package_tags pt JOIN tags t ON t.name = pt.tag WHERE pt.package = p.name), '[]'),
    'dependencies', COALESCE((SELECT json_agg(json_build_object('kind', d.kind, 'target', d.target, 'version', d.version,
        'package', (SELECT json_build_object('name', q.name, 'version', q.version, 'summary', q.summary) FROM packages q WHERE q.name = d.target))
        ORDER BY d.kind COLLATE "C", d.seq, d.alternative)
      FROM dependencies d WHERE d.package = p.name), '[]'),
    'dependency_count', (SELECT count(*) FROM dependencies d WHERE d.package = p.name)
  )::text
FROM packages p
