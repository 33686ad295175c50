package postgres

import (
	"encoding/hex"
	"fmt"
	"math"
	"math/rand/v2"
	"net/netip"
	"strconv"
	"strings"

	"github.com/tailwater/tailwater/change"
)

// generator makes the text of random values, of a seed.
type generator struct{ *rand.Rand }

func newGenerator(seed uint64) *generator { return &generator{rand.New(rand.NewPCG(seed, 1))} }

// randomColumn is a type with a generator of its input; major is the server's version.
type randomColumn struct {
	typ    string
	oracle string
	since  int
	gen    func(g *generator, major int) string
}

var randomColumns = []randomColumn{
	{"bool", "json", 0, func(g *generator, _ int) string { return strconv.FormatBool(g.IntN(2) == 0) }},
	{"int2", "json", 0, func(g *generator, _ int) string { return strconv.Itoa(int(int16(g.integer()))) }},
	{"int4", "json", 0, func(g *generator, _ int) string { return strconv.Itoa(int(int32(g.integer()))) }},
	{"int8", "json", 0, func(g *generator, _ int) string { return strconv.FormatInt(g.integer(), 10) }},
	{"oid", "text", 0, func(g *generator, _ int) string { return strconv.FormatUint(uint64(g.Uint32()), 10) }},
	{"float4", "float", 0, func(g *generator, _ int) string { return g.float(32) }},
	{"float8", "float", 0, func(g *generator, _ int) string { return g.float(64) }},
	{"numeric", "json", 0, (*generator).numeric},
	{"numeric(30,5)", "json", 0, func(g *generator, _ int) string { return g.decimal(20, 9) }},
	{"money", "money", 0, func(g *generator, _ int) string { return g.money() }},
	{"text", "json", 0, func(g *generator, _ int) string { return g.text(40) }},
	{"varchar(30)", "json", 0, func(g *generator, _ int) string { return g.text(10) }},
	{"char(12)", "json", 0, func(g *generator, _ int) string { return g.text(10) }},
	{`"char"`, "json", 0, func(g *generator, _ int) string { return string(rune(1 + g.IntN(127))) }},
	{"name", "json", 0, func(g *generator, _ int) string { return g.text(10) }},
	{"bytea", "bytea", 0, func(g *generator, _ int) string { return `\x` + hex.EncodeToString(g.bytes(g.IntN(100))) }},
	{"date", "date", 0, func(g *generator, _ int) string {
		return g.infinite(func() string { return g.date(-2451545, 2145031948) })
	}},
	{"time", "string", 0, func(g *generator, _ int) string { return g.time() }},
	{"timetz", "timetz", 0, func(g *generator, _ int) string { return g.time() + g.offset() }},
	{"timestamp", "timestamp", 0, func(g *generator, _ int) string { return g.infinite(func() string { return g.timestamp("") }) }},
	{"timestamptz", "timestamptz", 0, func(g *generator, _ int) string { return g.infinite(func() string { return g.timestamp(g.offset()) }) }},
	{"interval", "string", 0, (*generator).interval},
	{"uuid", "json", 0, func(g *generator, _ int) string { return hex.EncodeToString(g.bytes(16)) }},
	{"json", "", 0, func(g *generator, _ int) string { return g.json(4) }},
	{"jsonb", "compact", 0, func(g *generator, _ int) string { return g.json(4) }},
	{"inet", "json", 0, func(g *generator, _ int) string { return g.prefix().String() }},
	{"cidr", "json", 0, func(g *generator, _ int) string { return g.prefix().Masked().String() }},
	{"macaddr", "json", 0, func(g *generator, _ int) string { return hex.EncodeToString(g.bytes(6)) }},
	{"macaddr8", "json", 0, func(g *generator, _ int) string { return hex.EncodeToString(g.bytes(8)) }},
	{"bit(9)", "json", 0, func(g *generator, _ int) string { return fmt.Sprintf("%09b", g.IntN(512)) }},
	{"varbit", "json", 0, func(g *generator, _ int) string { return strings.Repeat(fmt.Sprintf("%b", g.IntN(512)), g.IntN(9)) }},
	{"point", "json", 0, func(g *generator, _ int) string { return "(" + g.float(64) + "," + g.float(64) + ")" }},
	{"xml", "json", 0, func(g *generator, _ int) string {
		return "<a b='" + g.label() + "'>" + g.label() + "&amp;</a>" + g.label()
	}},
	{"mood", "json", 0, func(g *generator, _ int) string { return g.oneOf(`it's "great"`, "ok", "", `a,b{}\`) }},
	{"dom_num", "json", 0, func(g *generator, _ int) string { return g.decimal(3, 4) }},
	{"dom_tstz", "timestamptz", 0, func(g *generator, _ int) string { return g.timestamp(g.offset()) }},
	{"pair", "json", 0, func(g *generator, _ int) string { return g.pair() }},
	{"nest", "json", 0, func(g *generator, _ int) string { return "(" + g.quoted(g.text(9)) + "," + g.quoted(g.pair()) + ")" }},
	{"pair[]", "compact", 0, func(g *generator, _ int) string { return g.array(func() string { return g.quoted(g.pair()) }) }},
	{"int[]", "compact", 0, func(g *generator, _ int) string {
		return g.array(func() string { return strconv.Itoa(int(int32(g.integer()))) })
	}},
	{"text[]", "compact", 0, func(g *generator, _ int) string { return g.array(func() string { return g.quoted(g.text(12)) }) }},
	{"numeric[]", "compact", 0, func(g *generator, _ int) string { return g.array(func() string { return g.decimal(30, 20) }) }},
	{"jsonb[]", "compact", 0, func(g *generator, _ int) string { return g.array(func() string { return g.quoted(g.json(2)) }) }},
	{"mood[]", "compact", 0, func(g *generator, _ int) string {
		return g.array(func() string { return g.quoted(g.oneOf(`it's "great"`, "", `a,b{}\`)) })
	}},
	{"int8range", "json", 0, func(g *generator, _ int) string { return g.intRange() }},
	{"numrange", "json", 0, func(g *generator, _ int) string { return "[" + g.decimalUnder(9) + ",1e9]" }},
	{"textrange", "json", 0, func(g *generator, _ int) string { return g.textRange() }},
	{"tstzrange", "json", 0, func(g *generator, _ int) string { return `["` + g.timestamp(g.offset()) + `",)` }},
	{"int8multirange", "multirange", 14, func(g *generator, _ int) string { return "{" + g.intRange() + "," + g.intRange() + "}" }},
	{"textmultirange", "multirange", 14, func(g *generator, _ int) string { return "{" + g.textRange() + "," + g.textRange() + "}" }},
	{"tsvector", "json", 0, func(g *generator, _ int) string { return g.lexeme() + " " + g.lexeme() + ":1A,2" }},
	{"pg_lsn", "json", 0, func(g *generator, _ int) string { return fmt.Sprintf("%X/%X", g.Uint32(), g.Uint32()) }},
	{"xid8", "json", 0, func(g *generator, _ int) string { return strconv.FormatUint(g.Uint64(), 10) }},
	{"tid", "json", 0, func(g *generator, _ int) string { return fmt.Sprintf("(%d,%d)", g.Uint32(), g.IntN(65536)) }},
	{"hs.hstore", "hstore", 0, func(g *generator, _ int) string { return g.hstore() }},
	{"hs.citext", "json", 0, func(g *generator, _ int) string { return g.text(20) }},
	{"hs.ltree", "json", 0, func(g *generator, _ int) string { return g.label() + "." + g.label() }},
	{"hs.cube", "json", 0, func(g *generator, _ int) string { return fmt.Sprintf("(%d,%g)", g.IntN(9), g.Float64()) }},
}

func (g *generator) oneOf(list ...string) string { return list[g.IntN(len(list))] }

// integer is of any size, more often small or at an end.
func (g *generator) integer() int64 {
	switch g.IntN(6) {
	case 0:
		return int64(g.IntN(10)) - 5
	case 1:
		return []int64{math.MaxInt64, math.MinInt64, math.MaxInt32, math.MinInt32, 1<<53 + 1, math.MaxInt16, math.MinInt16}[g.IntN(7)]
	}
	return int64(g.Uint64()) >> g.IntN(64)
}

func (g *generator) float(bits int) string {
	switch g.IntN(8) {
	case 0:
		return g.oneOf("NaN", "Infinity", "-Infinity", "-0", "0", "1e-6", "1e-7", "1e20", "1e21", "1e22", "0.1", "1e-5", "123456789012345680000")
	case 1:
		return strconv.FormatFloat(g.Float64(), 'e', g.IntN(20), 64)
	case 2:
		return strconv.FormatInt(int64(int32(g.integer())), 10)
	case 3:
		return fmt.Sprintf("%de%d", g.IntN(1000), g.IntN(50)-25)
	}
	f := math.Float64frombits(g.Uint64())
	if bits == 32 {
		f = float64(math.Float32frombits(g.Uint32()))
	}
	if math.IsNaN(f) || math.IsInf(f, 0) {
		return "NaN"
	}
	return strconv.FormatFloat(f, 'g', -1, bits)
}

func (g *generator) digits(n int) string {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte('0' + g.IntN(10))
	}
	return string(b)
}

// decimal has up to whole digits before and up to fraction behind the point.
func (g *generator) decimal(whole, fraction int) string {
	return g.oneOf("", "-") + g.decimalUnder(whole) + "." + g.digits(g.IntN(fraction)) + "0"
}

func (g *generator) decimalUnder(whole int) string { return g.digits(1 + g.IntN(whole)) }

func (g *generator) numeric(major int) string {
	switch g.IntN(30) {
	case 0:
		return "NaN"
	case 1:
		if major >= 14 {
			return g.oneOf("Infinity", "-Infinity")
		}
	case 2:
		return g.decimal(3000, 300)
	case 3:
		return fmt.Sprintf("%de%d", g.IntN(1000), g.IntN(600)-300)
	}
	return g.decimal(40, 30)
}

func (g *generator) money() string {
	n := g.integer() / 100
	return fmt.Sprintf("%d.%02d", n, g.IntN(8))
}

func (g *generator) bytes(n int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(g.Uint32())
	}
	return b
}

// text is of up to n characters, of those that need care more often.
func (g *generator) text(n int) string {
	var b strings.Builder
	for range g.IntN(n) {
		switch g.IntN(6) {
		case 0:
			b.WriteRune(rune(1 + g.IntN(0x7F)))
		case 1:
			b.WriteByte(`"\'{}(),[]<>&:=;NUL `[g.IntN(20)])
		case 2:
			b.WriteRune([]rune{0xE9, 0x2028, 0xFFFD, 0xFFFF, 0x1F600, 0x10FFFF, 0x85, 0x7F, '\n', '\t', '\r'}[g.IntN(11)])
		case 3:
			r := rune(g.IntN(0x10FFFF) + 1)
			if r >= 0xD800 && r < 0xE000 {
				r = 'x'
			}
			b.WriteRune(r)
		default:
			b.WriteByte(byte('a' + g.IntN(26)))
		}
	}
	return b.String()
}

func (g *generator) label() string { return "L" + hex.EncodeToString(g.bytes(1+g.IntN(6))) }

func (g *generator) infinite(finite func() string) string {
	if g.IntN(30) == 0 {
		return g.oneOf("infinity", "-infinity")
	}
	return finite()
}

// date is of a day from low on and below high, counted from 1970, more often near to now.
func (g *generator) date(low, high int64) string {
	days := low + g.Int64N(high-low)
	if g.IntN(3) > 0 {
		days = int64(g.IntN(2000000)) - 1000000
	}
	year, month, day := change.CivilDate(days)
	return g.year(year, month, day, "")
}

func (g *generator) year(year int64, month, day int, rest string) string {
	if year <= 0 {
		return fmt.Sprintf("%04d-%02d-%02d%s BC", 1-year, month, day, rest)
	}
	return fmt.Sprintf("%04d-%02d-%02d%s", year, month, day, rest)
}

func (g *generator) time() string {
	if g.IntN(30) == 0 {
		return "24:00:00"
	}
	return fmt.Sprintf("%02d:%02d:%02d%s", g.IntN(24), g.IntN(60), g.IntN(60), g.oneOf("", "", ".5", fmt.Sprintf(".%06d", g.IntN(1000000))))
}

func (g *generator) offset() string {
	return fmt.Sprintf("%s%02d%s", g.oneOf("+", "-"), g.IntN(15), g.oneOf("", ":30", ":45", fmt.Sprintf(":%02d:%02d", g.IntN(60), g.IntN(60))))
}

func (g *generator) timestamp(zone string) string {
	days := int64(-2440587) + g.Int64N(106751991)
	if g.IntN(3) > 0 {
		days = int64(g.IntN(2000000)) - 1000000
	}
	year, month, day := change.CivilDate(days)
	return g.year(year, month, day, fmt.Sprintf(" %02d:%02d:%02d%s", g.IntN(24), g.IntN(60), g.IntN(60), g.oneOf("", ".1", fmt.Sprintf(".%06d", g.IntN(1000000))))+zone)
}

func (g *generator) interval(major int) string {
	if major >= 17 && g.IntN(30) == 0 {
		return g.oneOf("infinity", "-infinity")
	}
	months, days := int32(g.integer())/2, int32(g.integer())/2
	hours := g.IntN(2000000000) >> g.IntN(31)
	return fmt.Sprintf("%d mons %d days %s%d:%02d:%02d.%06d", months, days, g.oneOf("", "-"), hours, g.IntN(60), g.IntN(60), g.IntN(1000000)/g.oneInt(1, 1000000))
}

func (g *generator) oneInt(list ...int) int { return list[g.IntN(len(list))] }

func (g *generator) prefix() netip.Prefix {
	b := g.bytes(g.oneInt(4, 16))
	if g.IntN(4) == 0 && len(b) == 16 {
		clear(b[:g.IntN(16)])
	}
	addr, _ := netip.AddrFromSlice(b)
	return netip.PrefixFrom(addr, g.IntN(addr.BitLen()+1))
}

// json is a document with blanks, members of the same name and needless escapes.
func (g *generator) json(depth int) string {
	kind := g.IntN(7)
	if depth == 0 {
		kind %= 5
	}
	blank := func() string { return g.oneOf("", "", " ", "\n", "\t ") }
	switch kind {
	case 0:
		return g.oneOf("true", "false", "null")
	case 1, 2:
		return g.oneOf("", "-") + strconv.Itoa(g.IntN(1000000)) + g.oneOf("", ".0", "."+g.digits(1+g.IntN(20))) + g.oneOf("", "", fmt.Sprintf("e%d", g.IntN(40)-20), "E+2")
	case 3, 4:
		return g.jsonString()
	}
	var items []string
	for range g.IntN(12) {
		item := blank() + g.json(depth-1) + blank()
		if kind == 6 {
			item = blank() + g.oneOf(g.jsonString(), `"a"`, `"\u0061"`, `"b"`) + blank() + ":" + item
		}
		items = append(items, item)
	}
	if kind == 6 {
		return "{" + strings.Join(items, ",") + blank() + "}"
	}
	return "[" + strings.Join(items, ",") + blank() + "]"
}

func (g *generator) jsonString() string {
	s := string(change.AppendJSONString(nil, g.text(12)))
	return strings.TrimSuffix(s, `"`) + g.oneOf("", `\u00e9`, `\ud83d\ude00`, `\/`, `\u001F`, `\u005c`) + `"`
}

// quoted quotes a field of a composite or an element of an array.
func (g *generator) quoted(s string) string {
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(s) + `"`
}

func (g *generator) pair() string {
	field := func(s string) string { return g.oneOf(s, s, s, "") }
	return "(" + field(strconv.Itoa(int(int32(g.integer())))) + "," + field(g.quoted(g.text(12))) + "," + field(g.decimal(3, 4)) + ")"
}

// array has one dimension, or two of two.
func (g *generator) array(elem func() string) string {
	item := func() string {
		if g.IntN(8) == 0 {
			return "NULL"
		}
		return elem()
	}
	if g.IntN(5) == 0 {
		return g.oneOf("", fmt.Sprintf("[%d:%[1]d][7:8]=", g.IntN(9)-4)) + "{{" + item() + "," + item() + "}}"
	}
	var items []string
	for range g.IntN(6) {
		items = append(items, item())
	}
	return "{" + strings.Join(items, ",") + "}"
}

func (g *generator) intRange() string {
	low := g.integer() / 4
	switch g.IntN(8) {
	case 0:
		return "empty"
	case 1:
		return fmt.Sprintf("(,%d]", low)
	case 2:
		return fmt.Sprintf("[%d,)", low)
	}
	return g.oneOf("[", "(") + fmt.Sprintf("%d,%d", low, low+int64(g.IntN(1000))) + g.oneOf("]", ")")
}

func (g *generator) textRange() string {
	a, b := g.text(9), g.text(9)
	if a > b {
		a, b = b, a
	}
	return "[" + g.quoted(a) + "," + g.quoted(b) + g.oneOf("]", ")")
}

func (g *generator) lexeme() string {
	return `'` + strings.NewReplacer(`\`, `\\`, `'`, `''`).Replace("x"+g.text(9)) + `'`
}

func (g *generator) hstore() string {
	var items []string
	for range g.IntN(6) {
		items = append(items, g.quoted(g.text(9))+g.oneOf("=>", " => ")+g.oneOf("NULL", g.quoted(g.text(9))))
	}
	return strings.Join(items, ", ")
}
