package spell

import (
	"strings"
	"testing"
)

func TestDistance(t *testing.T) {
	long := strings.Repeat("x", 300)
	for _, tt := range []struct {
		a, b string
		want int
	}{
		{"", "", 0}, {"", "abc", 3}, {"abc", "", 3}, {"orders", "orders", 0},
		{"oders", "orders", 1}, {"ordders", "orders", 1}, {"orxers", "orders", 1}, {"odrers", "orders", 1},
		{"ca", "abc", 3}, // a swap is not edited again
		{"kitten", "sitting", 3}, {long, long[:299], 300},
	} {
		if got := Distance(tt.a, tt.b); got != tt.want {
			t.Errorf("Distance(%.9q, %.9q) = %d, want %d", tt.a, tt.b, got, tt.want)
		}
		if there, back := Distance(tt.a, tt.b), Distance(tt.b, tt.a); there != back {
			t.Errorf("%.9q and %.9q: %d there, %d back", tt.a, tt.b, there, back)
		}
	}
}
