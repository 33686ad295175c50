package config

import (
	"slices"
	"strings"
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
		if d := distance(fold(word), fold(k)); d < bestDist {
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

// distance is the number of insertions, deletions, replacements and swaps of
// neighbours between two words (optimal string alignment).
func distance(a, b string) int {
	if len(a) > 64 || len(b) > 64 {
		return 64
	}
	prev2 := make([]int, len(b)+1)
	prev, cur := make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range prev {
		prev[j] = j
	}
	for i := 1; i <= len(a); i++ {
		cur[0] = i
		for j := 1; j <= len(b); j++ {
			cost := 1
			if a[i-1] == b[j-1] {
				cost = 0
			}
			cur[j] = min(prev[j]+1, cur[j-1]+1, prev[j-1]+cost)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				cur[j] = min(cur[j], prev2[j-2]+1)
			}
		}
		prev2, prev, cur = prev, cur, prev2
	}
	return prev[len(b)]
}
