package demo

import (
	"context"
	"fmt"
	"math/rand/v2"

	"github.com/jackc/pgx/v5"
)

// operation is one kind of change, drawn weight times in the sum of all.
type operation struct {
	name   string
	weight int
	run    func(ctx context.Context, tx pgx.Tx, r *rand.Rand) error
}

var operations = []operation{
	{"change a price", 30, statement(`UPDATE products SET price = $2::text::numeric, updated_at = now() WHERE id = `+anyOf("products"), func(r *rand.Rand) []any { return []any{price(r)} })},
	{"describe a product", 8, func(ctx context.Context, tx pgx.Tx, r *rand.Rand) error {
		return do(ctx, tx, r, `UPDATE products SET description = $2, updated_at = now() WHERE id = `+anyOf("products"), description(r, departments[r.IntN(len(departments))]))
	}},
	{"rename a product", 8, func(ctx context.Context, tx pgx.Tx, r *rand.Rand) error {
		return do(ctx, tx, r, `UPDATE products SET name = $2, updated_at = now() WHERE id = `+anyOf("products"), productName(r, departments[r.IntN(len(departments))]))
	}},
	{"change a status", 6, statement(`UPDATE products SET status = $2, updated_at = now() WHERE id = `+anyOf("products"), func(r *rand.Rand) []any { return []any{status(r)} })},
	{"add a product", 6, addProduct},
	{"delete a product", 3, statement(`DELETE FROM products WHERE id = `+anyOf("products"), nil)},
	{"give a product another key", 2, statement(`UPDATE products SET id = nextval('public.products_id_seq') WHERE id = `+anyOf("products"), nil)},
	{"move a product to another brand", 4, statement(`UPDATE products SET brand_id = (SELECT id FROM brands ORDER BY random() LIMIT 1) WHERE id = `+anyOf("products"), nil)},

	{"add a review", 25, addReview},
	{"edit a review", 8, func(ctx context.Context, tx pgx.Tx, r *rand.Rand) error {
		rating, title, body := review(r)
		return do(ctx, tx, r, `UPDATE reviews SET rating = $2, title = $3, body = $4 WHERE id = `+anyOf("reviews"), rating, title, body)
	}},
	{"approve or hide a review", 8, statement(`UPDATE reviews SET approved = NOT approved WHERE id = `+anyOf("reviews"), nil)},
	{"move a review to another product", 6, statement(`UPDATE reviews SET product_id = (SELECT id FROM products WHERE id >= (SELECT product_id FROM reviews WHERE id = `+anyOf("reviews")+`) + 3 ORDER BY id LIMIT 1)
		WHERE id = `+anyOf("reviews")+` AND EXISTS (SELECT FROM products WHERE id >= reviews.product_id + 3)`, nil)},
	{"delete a review", 8, statement(`DELETE FROM reviews WHERE id = `+anyOf("reviews"), nil)},
	{"date a review back", 3, statement(`UPDATE reviews SET created_at = $2 WHERE id = `+anyOf("reviews"), func(r *rand.Rand) []any { return []any{moment(r)} })},

	{"put a product into a category", 8, statement(`INSERT INTO product_categories SELECT p.id, c.id FROM products p, (SELECT id FROM categories ORDER BY random() LIMIT 1) c
		WHERE p.id = `+anyOf("products")+` ON CONFLICT DO NOTHING`, nil)},
	{"take a product out of its categories", 4, statement(`DELETE FROM product_categories WHERE product_id = `+anyOf("products"), nil)},
	{"move a product to another category", 4, statement(`UPDATE product_categories SET category_id = (SELECT id FROM categories ORDER BY random() LIMIT 1) WHERE (product_id, category_id) =
		(SELECT product_id, category_id FROM product_categories WHERE product_id >= `+anyOf("products")+` ORDER BY 1, 2 LIMIT 1)`, nil)},

	{"rename a brand", 2, func(ctx context.Context, tx pgx.Tx, r *rand.Rand) error {
		return do(ctx, tx, r, `UPDATE brands SET name = $2 WHERE id = `+anyOf("brands"), brandName(r))
	}},
	{"move a brand to another country", 1, statement(`UPDATE brands SET country_code = $2 WHERE id = `+anyOf("brands"), func(r *rand.Rand) []any { return []any{countries[r.IntN(len(countries))][0]} })},
	{"replace a brand", 1, replaceBrand},
	{"rename a category", 1, func(ctx context.Context, tx pgx.Tx, r *rand.Rand) error {
		names := categoryNames()
		return do(ctx, tx, r, `UPDATE categories SET name = $2 WHERE id = `+anyOf("categories"), fmt.Sprintf("%s %d", pick(r, names), 1+r.IntN(99)))
	}},
	{"rename a country", 1, func(ctx context.Context, tx pgx.Tx, r *rand.Rand) error {
		c := countries[r.IntN(len(countries))]
		name := c[1]
		if r.IntN(2) == 0 {
			name += " (" + c[0] + ")"
		}
		_, err := tx.Exec(ctx, `UPDATE countries SET name = $2 WHERE code = $1`, c[0], name)
		return err
	}},
}

// anyOf is the id of some row of a table, drawn by the parameter $1 between 0
// and 1 over the range of ids.
func anyOf(table string) string {
	return fmt.Sprintf(`(SELECT id FROM %[1]s WHERE id >= (SELECT (min(id) + floor($1::float8 * (max(id) - min(id) + 1)))::bigint FROM %[1]s) ORDER BY id LIMIT 1)`, table)
}

// statement is an operation of one statement with more parameters drawn by args.
func statement(sql string, args func(*rand.Rand) []any) func(context.Context, pgx.Tx, *rand.Rand) error {
	return func(ctx context.Context, tx pgx.Tx, r *rand.Rand) error {
		var more []any
		if args != nil {
			more = args(r)
		}
		return do(ctx, tx, r, sql, more...)
	}
}

func do(ctx context.Context, tx pgx.Tx, r *rand.Rand, sql string, args ...any) error {
	_, err := tx.Exec(ctx, sql, append([]any{r.Float64()}, args...)...)
	return err
}

func addProduct(ctx context.Context, tx pgx.Tx, r *rand.Rand) error {
	d := departments[r.IntN(len(departments))]
	var id int64
	err := tx.QueryRow(ctx, `INSERT INTO products (brand_id, name, description, price, status, updated_at)
		VALUES (`+anyOf("brands")+`, $2, $3, $4::text::numeric, $5, now()) RETURNING id`,
		r.Float64(), productName(r, d), description(r, d), price(r), status(r)).Scan(&id)
	if err != nil {
		return err
	}
	_, err = tx.Exec(ctx, `INSERT INTO product_categories SELECT $1, id FROM categories WHERE name = any($2) ON CONFLICT DO NOTHING`,
		id, d.categories[:1+r.IntN(2)])
	return err
}

func addReview(ctx context.Context, tx pgx.Tx, r *rand.Rand) error {
	rating, title, body := review(r)
	return do(ctx, tx, r, `INSERT INTO reviews (product_id, rating, title, body, approved, created_at)
		SELECT id, $2, $3, $4, $5, now() FROM products WHERE id = `+anyOf("products"), rating, title, body, r.IntN(7) != 0)
}

// replaceBrand deletes a brand, whose products then have none for a while or
// for ever, and founds another.
func replaceBrand(ctx context.Context, tx pgx.Tx, r *rand.Rand) error {
	if err := do(ctx, tx, r, `DELETE FROM brands WHERE id = `+anyOf("brands")); err != nil {
		return err
	}
	_, err := tx.Exec(ctx, `INSERT INTO brands (name, country_code) SELECT $1, code FROM countries ORDER BY random() LIMIT 1`, brandName(r))
	return err
}

// choose draws an operation by weight.
func choose(r *rand.Rand) operation {
	n := r.IntN(totalWeight)
	for _, o := range operations {
		if n < o.weight {
			return o
		}
		n -= o.weight
	}
	panic("demo: weights") // cannot be: n is below their sum
}

var totalWeight = func() int {
	n := 0
	for _, o := range operations {
		n += o.weight
	}
	return n
}()
