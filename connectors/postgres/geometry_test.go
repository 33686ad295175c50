package postgres

import "testing"

func TestMeasured(t *testing.T) {
	for typ, want := range map[string]bool{
		"public.geometry(PointZM,4326)": true, "geometry(GeometryM)": true, "gis.geography(PointM,4326)[]": true,
		"public.geometry(PointZ,4326)": false, "public.geometry": false, "character varying(10)": false, "public.mood": false, "other(M)": false,
	} {
		if got := measured(typ); got != want {
			t.Errorf("%s: %v", typ, got)
		}
	}
}
