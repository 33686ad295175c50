package change

import (
	"crypto/sha256"
	"encoding/hex"
	"unicode/utf8"
)

// Longest document id, and how much of a longer one is kept before its hash.
const (
	maxDocumentID  = 480
	documentIDHead = 400
)

// DocumentID returns the id of the document whose root row has this key: the
// parts' canonical text with \ as \\, | as \| and an empty part as \e, joined
// by |. Above 480 bytes it is the first 400, cut at a character, ~ and SHA-256.
func DocumentID(key Key) (string, error) {
	parts, err := DecodeKey(key)
	if err != nil {
		return "", err
	}
	var id, text []byte
	for i, p := range parts {
		if i > 0 {
			id = append(id, '|')
		}
		text = AppendText(text[:0], p)
		if len(text) == 0 {
			id = append(id, `\e`...)
		}
		for _, c := range text {
			if c == '\\' || c == '|' {
				id = append(id, '\\')
			}
			id = append(id, c)
		}
	}
	if len(id) <= maxDocumentID {
		return string(id), nil
	}
	sum := sha256.Sum256(id)
	head := id[:documentIDHead]
	for len(head) > 0 && !utf8.RuneStart(id[len(head)]) {
		head = head[:len(head)-1]
	}
	return string(head) + "~" + hex.EncodeToString(sum[:]), nil
}
