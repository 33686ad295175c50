package postgres

import (
	"errors"
	"testing"

	"github.com/tailwater/tailwater/change"
)

func TestPosition(t *testing.T) {
	want := place{"7312345678901234567", 3, 0x16B3748, 0x1_00000010}
	pos := want.position()
	if pos.Name != "0/16B3748" || pos.Resume != "7312345678901234567/3/1/10" {
		t.Errorf("position = %+v", pos)
	}
	got, err := parsePosition(pos)
	if err != nil || got != want {
		t.Errorf("parsePosition = %+v, %v", got, err)
	}
	for _, bad := range []change.Position{{}, {Name: "0/1", Resume: "1/2"}, {Name: "0/1", Resume: "1/x/0/1"}, {Name: "0/1", Resume: "1/1/0/G"}, {Name: "x", Resume: "1/1/0/1"}, {Name: "0/1", Resume: "/1/0/1"}} {
		if _, err := parsePosition(bad); !errors.Is(err, errPosition) {
			t.Errorf("parsePosition(%+v) = %v, want an error", bad, err)
		}
	}
}

func TestV16FloorInsert(t *testing.T) {
	const page, segment = 8192, 16 << 20
	for _, tt := range []struct{ in, want LSN }{
		{0x1000028, 0x1000000},            // just past the long header of a segment
		{0x1002018, 0x1002000},            // just past the header of a page
		{0x1000018, 0x1000000},            // as it would be with a short one
		{0x1002020, 0x1002020},            // a record is there
		{0x1002028, 0x1002028},            // no segment begins here
		{0x16B3748, 0x16B3748},            //
		{2<<24 + 0x28, 2 << 24},           //
		{0x1_00000028, 0x1_00000000},      //
		{0x1_00002018, LSN(0x1_00002000)}, //
	} {
		if got := floorInsert(tt.in, page, segment); got != tt.want {
			t.Errorf("floorInsert(%s) = %s, want %s", tt.in, got, tt.want)
		}
	}
}

func TestV5WidenXID(t *testing.T) {
	for _, tt := range []struct {
		xid       uint32
		reference uint64
		want      uint64
	}{
		{731, 740, 731},
		{750, 740, 750},
		{5, 1<<32 - 10, 1<<32 + 5},
		{1<<32 - 5, 1<<32 + 10, 1<<32 - 5},
		{1<<32 - 5, 7<<32 + 10, 7<<32 - 5},
		{10, 7<<32 - 5, 7<<32 + 10},
		{1<<32 - 5, 100, 1<<32 - 5}, // none is below zero
	} {
		if got := widenXID(tt.xid, tt.reference); got != tt.want {
			t.Errorf("widenXID(%d, %d) = %d, want %d", tt.xid, tt.reference, got, tt.want)
		}
	}
}

func TestV14TimelineHistory(t *testing.T) {
	const history = "1\t0/3000148\tno recovery target specified\n\n2\t0/5000000\tbefore 2026\n"
	for _, tt := range []struct {
		timeline uint32
		want     LSN
	}{{1, 0x3000148}, {2, 0x5000000}, {3, 0}} {
		if got, err := parseTimelineHistory(history, tt.timeline); err != nil || got != tt.want {
			t.Errorf("fork of %d = %s, %v; want %s", tt.timeline, got, err, tt.want)
		}
	}
	if _, err := parseTimelineHistory("1\tx\n", 1); err == nil {
		t.Error("a damaged history is taken")
	}
}

// TestV14History checks each kind of other history against a log that ends at 0/500.
func TestV14History(t *testing.T) {
	at := place{"42", 2, 0x4F0, 0x500}
	o := Options{Source: "s"}.withDefaults()
	for _, tt := range []struct {
		name    string
		server  server
		flushed LSN
		rewound bool
	}{
		{"same", server{system: "42", timeline: 2}, 0x500, false},
		{"ahead", server{system: "42", timeline: 2}, 0x900, false},
		{"restored copy", server{system: "42", timeline: 2}, 0x4FF, true},
		{"older timeline", server{system: "42", timeline: 1}, 0x900, true},
		{"other system", server{system: "43", timeline: 2}, 0x900, true},
	} {
		p := &opener{o: &o, server: &tt.server, flushed: tt.flushed}
		err := p.checkHistory(t.Context(), at)
		if errors.Is(err, errRewound) != tt.rewound {
			t.Errorf("%s: %v, want rewound = %v", tt.name, err, tt.rewound)
		}
	}
}
