package postgres

import (
	"encoding/binary"
	"encoding/hex"
	"errors"
	"math"
	"strconv"
	"strings"

	"github.com/tailwater/tailwater/change"
)

// Geometries of PostGIS: their text is EWKB in hexadecimal, which becomes a
// GeoJSON geometry (TYPES.md K14). EWKB is, for each geometry:
//
//	byte order u8 (1 little-endian), type u32, [srid u32], then by type
//	  1 point              x y [z] [m], all NaN: empty
//	  2 line               u32 count, points
//	  3 polygon            u32 count, rings as 2
//	  4–7 multi, collection u32 count, geometries
//
// The type's high bits say whether there are z (0x80000000), m (0x40000000) and
// a SRID (0x20000000). Other types, such as curves, have no form in GeoJSON.

var errGeometry = errors.New("not a geometry that GeoJSON has")

const (
	ewkbZ    = 0x80000000
	ewkbM    = 0x40000000
	ewkbSRID = 0x20000000

	geoPoint, geoLine, geoPolygon, geoCollection = 1, 2, 3, 7

	maxGeometryDepth = 64
)

var geometryNames = [...]string{geoPoint: "Point", geoLine: "LineString", geoPolygon: "Polygon", 4: "MultiPoint", 5: "MultiLineString", 6: "MultiPolygon",
	geoCollection: "GeometryCollection"}

// appendGeometry takes EWKB in hexadecimal. M is left out: GeoJSON has no place for it.
func appendGeometry(dst, text []byte) ([]byte, error) {
	start := len(dst)
	dst, gap := openSized(dst, len(text))
	at := len(dst)
	// The bytes stand before the JSON and are taken out once it is written.
	dst, err := hex.AppendDecode(dst, text)
	if err != nil {
		return nil, errGeometry
	}
	end := len(dst)
	p := ewkbReader{in: dst[at:end], out: dst}
	p.geometry(0)
	if p.failed || len(p.in) != 0 {
		return nil, errGeometry
	}
	return closeSized(moveDown(p.out, at, end), start, gap), nil
}

// ewkbReader reads EWKB and writes GeoJSON; failed sticks.
type ewkbReader struct {
	in, out []byte
	failed  bool

	order binary.ByteOrder // of the geometry being read
	z, m  bool
	srid  uint32
}

func (p *ewkbReader) take(n int) []byte {
	if len(p.in) < n {
		p.failed, p.in = true, nil
		return nil
	}
	b := p.in[:n]
	p.in = p.in[n:]
	return b
}

func (p *ewkbReader) u32() uint32 {
	if b := p.take(4); b != nil {
		return p.order.Uint32(b)
	}
	return 0
}

// header reads what a geometry begins with and returns its type, 0 if it has none that is known.
func (p *ewkbReader) header() uint32 {
	p.order = binary.LittleEndian
	if b := p.take(1); b != nil && b[0] == 0 {
		p.order = binary.BigEndian
	}
	typ := p.u32()
	p.z, p.m = typ&ewkbZ != 0, typ&ewkbM != 0
	if typ&ewkbSRID != 0 {
		p.srid = p.u32()
	}
	if typ &= 0xFFFF; p.failed || typ == 0 || int(typ) >= len(geometryNames) {
		p.failed = true
		return 0
	}
	return typ
}

// geometry reads a geometry and writes its object.
func (p *ewkbReader) geometry(depth int) {
	typ := p.header()
	if p.failed || depth > maxGeometryDepth {
		p.failed = true
		return
	}
	p.out = append(append(append(p.out, `{"type":"`...), geometryNames[typ]...), `","`...)
	if typ == geoCollection {
		p.out = append(p.out, `geometries":`...)
		p.list(func() { p.geometry(depth + 1) })
	} else {
		p.out = append(p.out, `coordinates":`...)
		p.coordinates(typ)
	}
	if depth == 0 && p.srid != 0 && p.srid != 4326 {
		p.out = strconv.AppendUint(append(p.out, `,"srid":`...), uint64(p.srid), 10)
	}
	p.out = append(p.out, '}')
}

func (p *ewkbReader) coordinates(typ uint32) {
	switch typ {
	case geoPoint:
		p.point(true)
	case geoLine:
		p.list(func() { p.point(false) })
	case geoPolygon:
		p.list(func() { p.list(func() { p.point(false) }) })
	default: // of parts of the type three before
		p.list(func() {
			if part := p.header(); part != typ-3 {
				p.failed = true
				return
			}
			p.coordinates(typ - 3)
		})
	}
}

// list writes an array of as many items as the count before them says.
func (p *ewkbReader) list(item func()) {
	n := p.u32()
	p.out = append(p.out, '[')
	for i := uint32(0); i < n && !p.failed; i++ {
		if i > 0 {
			p.out = append(p.out, ',')
		}
		item()
	}
	p.out = append(p.out, ']')
}

// point writes the numbers of a point; one without any is empty, by itself only.
func (p *ewkbReader) point(alone bool) {
	n := 2
	if p.z {
		n++
	}
	var v [3]float64
	for i := range n {
		if b := p.take(8); b != nil {
			v[i] = math.Float64frombits(p.order.Uint64(b))
		}
	}
	if p.m {
		p.take(8)
	}
	p.out = append(p.out, '[')
	if empty := alone && math.IsNaN(v[0]) && math.IsNaN(v[1]); !empty {
		for i := range n {
			if i > 0 {
				p.out = append(p.out, ',')
			}
			p.out = change.AppendJSON(p.out, change.Float64(v[i]))
		}
	}
	p.out = append(p.out, ']')
}

// measured reports whether a column's type says that its geometries have an M:
// "public.geometry(PointZM,4326)".
func measured(sourceType string) bool {
	name, rest, ok := strings.Cut(sourceType, "(")
	sub, _, _ := strings.Cut(strings.TrimRight(rest, ")[]"), ",")
	return ok && (strings.HasSuffix(name, "geometry") || strings.HasSuffix(name, "geography")) && strings.HasSuffix(sub, "M")
}
