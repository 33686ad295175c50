package config

import (
	"slices"
	"strings"

	"github.com/tailwater/tailwater/internal/spell"
)

// suggest is the known word nearest to a misspelt one, or "".
func suggest(word string, known []string) string {
	fold := func(s string) string {
		return strings.NewReplacer("-", "", "_", "", " ", "").Replace(strings.ToLower(s))
	}
	best, bestDist := "", max(1, min(3, len(word)/3))+1
	for _, k := range known {
		if fold(k) == fold(word) {
			return k
		}
		if d := spell.Distance(fold(word), fold(k)); d < bestDist {
			best, bestDist = k, d
		}
	}
	if best == "" && len(word) >= 4 {
		for _, k := range known {
			if strings.HasPrefix(k, word) || len(k) >= 4 && strings.HasPrefix(word, k) {
				return k
			}
		}
	}
	return best
}

// Suggest is suggest for other packages: the known word nearest to a misspelt
// one, or "" if none is near.
func Suggest(word string, known []string) string { return suggest(word, known) }

// didYouMean is a hint that names the nearest word, or else all of them.
func didYouMean(word string, known []string) string {
	if s := suggest(word, known); s != "" {
		return "did you mean " + quote(s) + "?"
	}
	if len(known) == 0 || len(known) > 30 {
		return ""
	}
	known = slices.Clone(known)
	slices.Sort(known)
	return "known here: " + strings.Join(known, ", ")
}
