package config

import (
	"strconv"
	"strings"
)

// joinPath appends a key to a path; a key that is no plain word is quoted.
func joinPath(path, key string) string {
	if !plainKey(key) {
		key = strconv.Quote(key)
	}
	if path == "" {
		return key
	}
	return path + "." + key
}

// parentPath cuts the last key or index of a path.
func parentPath(path string) string {
	if strings.HasSuffix(path, "]") {
		if i := strings.LastIndexByte(path, '['); i >= 0 {
			return path[:i]
		}
	}
	if strings.HasSuffix(path, `"`) {
		if i := strings.LastIndex(path[:len(path)-1], `."`); i >= 0 {
			return path[:i]
		}
		return ""
	}
	if i := strings.LastIndexByte(path, '.'); i >= 0 {
		return path[:i]
	}
	return ""
}

func plainKey(key string) bool {
	if key == "" || len(key) > 200 {
		return false
	}
	for _, r := range key {
		if r == '.' || r == '"' || r == '[' || r == ']' || r <= ' ' || r == 0x7f {
			return false
		}
	}
	return true
}

// quote shows a word of the file in a message, bounded.
func quote(s string) string {
	if r := []rune(s); len(r) > 80 {
		s = string(r[:80]) + "…"
	}
	return strconv.Quote(s)
}
