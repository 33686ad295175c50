package postgres

import "testing"

func TestPattern(t *testing.T) {
	for _, tt := range []struct {
		pattern, name string
		want          bool
	}{
		{"public.*", "public.a", true},
		{"public.*", "Public.a", false},
		{"orders", "public.orders", true},
		{"orders", "shop.orders", false},
		{"ord*", "public.orders", true},
		{"ord*", "shop.orders", false},
		{"*", "shop.orders", true},
		{"*.orders", "shop.orders", true},
		{"shop.*_2*", "shop.orders_2024", true},
		{"shop.*_2*", "shop.orders", false},
		{"a*a", "public.a", false},
		{"shop.o*s*", "shop.orders.old", true},
	} {
		if got := parsePattern(tt.pattern).match(tt.name); got != tt.want {
			t.Errorf("%q matches %q = %v", tt.pattern, tt.name, got)
		}
	}
}

func TestNearest(t *testing.T) {
	names := []string{"public.products", "public.orders", "shop.Orders"}
	for want, near := range map[string]string{"public.product": "public.products", "public.ordres": "public.orders", "shop.orders": "shop.Orders", "public.zzz": "", "public.ordnung": "", "shop.products": "public.products"} {
		if got := nearest(want, names); got != near {
			t.Errorf("nearest(%s) = %q, want %q", want, got, near)
		}
	}
}
