package postgres

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// visibility is a pg_snapshot: which transactions had ended when it was taken.
type visibility struct {
	xmin, xmax uint64
	active     []uint64 // in progress, between xmin and xmax, ascending
}

// parseVisibility reads the text of a pg_snapshot, xmin:xmax:xip,xip.
func parseVisibility(text string) (*visibility, error) {
	f := strings.Split(text, ":")
	if len(f) != 3 {
		return nil, fmt.Errorf("%q is no pg_snapshot", text)
	}
	v := &visibility{}
	var err1, err2 error
	v.xmin, err1 = strconv.ParseUint(f[0], 10, 64)
	v.xmax, err2 = strconv.ParseUint(f[1], 10, 64)
	if err1 != nil || err2 != nil || v.xmin > v.xmax {
		return nil, fmt.Errorf("%q is no pg_snapshot", text)
	}
	if f[2] == "" {
		return v, nil
	}
	for _, s := range strings.Split(f[2], ",") {
		xid, err := strconv.ParseUint(s, 10, 64)
		if err != nil {
			return nil, fmt.Errorf("%q is no pg_snapshot", text)
		}
		v.active = append(v.active, xid)
	}
	slices.Sort(v.active)
	return v, nil
}

// Contains implements snapshot.View: tx, a top-level transaction that committed,
// had ended.
func (v *visibility) Contains(tx string) bool {
	xid, err := strconv.ParseUint(tx, 10, 64)
	if err != nil || xid >= v.xmax {
		return false
	}
	_, found := slices.BinarySearch(v.active, xid)
	return !found
}
