package change

// A re-read request is a record of the topic _snapshots.SOURCE. It asks that the
// row with this key be read from the database again: the insert half of a key
// change came with unchanged columns, which no older record of its key holds.
// The chunk that answers it, or a later whole row or delete, carries its
// tombstone. Its value is version u8 = 1.
//
// The key is the tuple (topic, "reread", bytes of the row's key).

const rereadWord = "reread"

var rereadValue = []byte{1}

// RereadRequest returns the control record that asks for the row of a key.
func RereadRequest(source, topic string, key Key) Control {
	return Control{Topic: TopicSnapshots + source, Key: RereadKey(topic, key), Value: rereadValue}
}

// RereadAnswered returns the control record that removes a request.
func RereadAnswered(source, topic string, key Key) Control {
	return Control{Topic: TopicSnapshots + source, Key: RereadKey(topic, key)}
}

// RereadKey returns the key of a request's record.
func RereadKey(topic string, key Key) Key {
	k := AppendKeyPart(nil, Text(topic), false)
	k = AppendKeyPart(k, Text(rereadWord), false)
	return AppendKeyPart(k, Bytes(key), false)
}

// DecodeRereadKey is the inverse of RereadKey; ok is false for the key of another record.
func DecodeRereadKey(k Key) (topic string, key Key, ok bool) {
	parts, err := DecodeKey(k)
	if err != nil || len(parts) != 3 || parts[0].Kind() != KindText || parts[1].Kind() != KindText ||
		parts[1].TextValue() != rereadWord || parts[2].Kind() != KindBytes {
		return "", nil, false
	}
	return parts[0].TextValue(), Key(parts[2].Raw()), true
}
