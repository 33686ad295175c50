package demo

import (
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"strconv"
	"strings"
	"time"
)

// Size says how large a shop is; zero fields take the demo's own sizes.
type Size struct {
	Products int // default 10,000
	Reviews  int // default 50,000
	Brands   int // default 240
}

func (s Size) withDefaults() Size {
	if s.Products <= 0 {
		s.Products = 10_000
	}
	if s.Reviews <= 0 {
		s.Reviews = 5 * s.Products
	}
	if s.Brands <= 0 {
		s.Brands = 240
	}
	return s
}

// epoch is the newest moment in the generated rows.
var epoch = time.Date(2026, 1, 15, 12, 0, 0, 0, time.UTC)

// table is one table's rows in PostgreSQL's text format for COPY.
type table struct {
	name    string
	columns string
	rows    func(*rowWriter)
}

// shop generates the tables in an order that foreign keys allow. Each table
// draws from a stream of its own, so that a size changes its own table only.
func shop(seed uint64, size Size) []table {
	size = size.withDefaults()
	draw := func(stream uint64) *rand.Rand { return rand.New(rand.NewPCG(seed, stream)) }
	return []table{
		{"countries", "code, name", writeCountries},
		{"brands", "id, name, country_code", func(w *rowWriter) { writeBrands(w, draw(1), size) }},
		{"categories", "id, name", writeCategories},
		{"products", "id, brand_id, name, description, price, status, updated_at", func(w *rowWriter) { writeProducts(w, draw(2), size) }},
		{"product_categories", "product_id, category_id", func(w *rowWriter) { writeLinks(w, draw(3), size) }},
		{"reviews", "id, product_id, rating, title, body, approved, created_at", func(w *rowWriter) { writeReviews(w, draw(4), size) }},
	}
}

func writeCountries(w *rowWriter) {
	for _, c := range countries {
		w.row(c[0], c[1])
	}
}

func writeBrands(w *rowWriter, r *rand.Rand, size Size) {
	for id := 1; id <= size.Brands; id++ {
		var country any = countries[r.IntN(len(countries))][0]
		if r.IntN(25) == 0 {
			country = nil
		}
		w.row(id, brandName(r), country)
	}
}

func brandName(r *rand.Rand) string {
	return pick(r, brandStarts) + pick(r, brandEnds) + pick(r, brandKinds)
}

func writeCategories(w *rowWriter) {
	for i, name := range categoryNames() {
		w.row(i+1, name)
	}
}

// categoryNames lists the departments' categories, five each, and then the shelves.
func categoryNames() []string {
	var names []string
	for _, d := range departments {
		names = append(names, d.categories...)
	}
	return append(names, shelves...)
}

// departmentOf gives a product its department; links and names agree on it.
func departmentOf(id int) int { return (id * 7) % len(departments) }

func writeProducts(w *rowWriter, r *rand.Rand, size Size) {
	for id := 1; id <= size.Products; id++ {
		d := departments[departmentOf(id)]
		var brand any = 1 + int(float64(size.Brands)*math.Pow(r.Float64(), 2)) // some brands are large
		if r.IntN(50) == 0 {
			brand = nil
		}
		w.row(id, brand, productName(r, d), description(r, d), price(r), status(r), moment(r))
	}
}

func productName(r *rand.Rand, d department) string {
	return pick(r, series) + " " + pick(r, d.qualities) + " " + pick(r, d.nouns)
}

// description is null for some products, and for one in forty so long that
// PostgreSQL keeps it out of line: an update that leaves it alone then does
// not send it.
func description(r *rand.Rand, d department) any {
	switch n := r.IntN(40); {
	case n < 3:
		return nil
	case n == 3:
		return manual(r, d)
	}
	return "For " + pick(r, d.uses) + ". " + pick(r, sentences) + " " + pick(r, sentences)
}

func manual(r *rand.Rand, d department) string {
	var b strings.Builder
	b.WriteString("For " + pick(r, d.uses) + ". The whole manual:")
	for b.Len() < 12_000 {
		fmt.Fprintf(&b, " Step %d: %s (part %s).", r.IntN(900), pick(r, sentences), strconv.FormatUint(r.Uint64(), 36))
	}
	return b.String()
}

func price(r *rand.Rand) string {
	cents := 400 + int(math.Exp(r.Float64()*6.5)*100)
	return fmt.Sprintf("%d.%02d", cents/100, cents%100)
}

func status(r *rand.Rand) string {
	switch n := r.IntN(20); {
	case n == 0:
		return "draft"
	case n < 3:
		return "discontinued"
	}
	return "active"
}

// moment is one of the last two years, to the microsecond; some fall on whole seconds.
func moment(r *rand.Rand) time.Time {
	t := epoch.Add(-time.Duration(r.Int64N(int64(2 * 365 * 24 * time.Hour)))).Truncate(time.Microsecond)
	if r.IntN(10) == 0 {
		return t.Truncate(time.Second)
	}
	return t
}

func writeLinks(w *rowWriter, r *rand.Rand, size Size) {
	const perDepartment = 5
	for product := 1; product <= size.Products; product++ {
		first := departmentOf(product) * perDepartment
		linked := map[int]bool{}
		for range r.IntN(4) {
			linked[first+1+r.IntN(perDepartment)] = true
		}
		if r.IntN(5) == 0 {
			linked[len(departments)*perDepartment+1+r.IntN(len(shelves))] = true
		}
		for category := 1; category <= len(departments)*perDepartment+len(shelves); category++ {
			if linked[category] {
				w.row(product, category)
			}
		}
	}
}

func writeReviews(w *rowWriter, r *rand.Rand, size Size) {
	for id := 1; id <= size.Reviews; id++ {
		product := 1 + int(float64(size.Products)*math.Pow(r.Float64(), 1.6)) // some products have many, some none
		rating, title, body := review(r)
		w.row(id, product, rating, title, body, r.IntN(7) != 0, moment(r))
	}
}

func review(r *rand.Rand) (rating int, title string, body any) {
	rating = min(5, 1+int(math.Sqrt(r.Float64())*5.4))
	if r.IntN(4) != 0 {
		body = pick(r, reviewBodies) + " " + pick(r, reviewBodies)
	}
	return rating, pick(r, reviewTitles[rating-1]), body
}

func pick(r *rand.Rand, from []string) string { return from[r.IntN(len(from))] }

// rowWriter writes rows in COPY's text format.
type rowWriter struct {
	w   io.Writer
	buf []byte
	err error
}

var copyEscapes = strings.NewReplacer(`\`, `\\`, "\t", `\t`, "\n", `\n`, "\r", `\r`)

func (w *rowWriter) row(values ...any) {
	w.buf = w.buf[:0]
	for i, v := range values {
		if i > 0 {
			w.buf = append(w.buf, '\t')
		}
		switch v := v.(type) {
		case nil:
			w.buf = append(w.buf, `\N`...)
		case string:
			w.buf = append(w.buf, copyEscapes.Replace(v)...)
		case int:
			w.buf = strconv.AppendInt(w.buf, int64(v), 10)
		case bool:
			w.buf = strconv.AppendBool(w.buf, v)
		case time.Time:
			w.buf = v.AppendFormat(w.buf, "2006-01-02 15:04:05.999999+00")
		default:
			panic(fmt.Sprintf("demo: a column of type %T", v)) // the generator's own mistake
		}
	}
	w.buf = append(w.buf, '\n')
	if w.err == nil {
		_, w.err = w.w.Write(w.buf)
	}
}
