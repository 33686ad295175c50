package change

import "unicode/utf8"

// Columns of the rows of a topic _messages.SOURCE.
const (
	messagePrefix        = iota // text, the key: what the sender calls its kind of message
	messageTransactional        // bool: it is part of its transaction; else it stands alone
	messageContent              // text: the content; null where it is not UTF-8
	messageBytes                // bytes: the content where it is not UTF-8; else null
)

// MessageSchema returns the layout of the topic of a source's logical messages.
func MessageSchema(source string) *Schema {
	return &Schema{Topic: TopicMessages + source, Key: []int{messagePrefix}, Columns: []Column{
		{Number: 1, Name: "prefix", Kind: KindText, SourceType: "text"},
		{Number: 2, Name: "transactional", Kind: KindBool, SourceType: "boolean"},
		{Number: 3, Name: "content", Kind: KindText, SourceType: "text", Nullable: true},
		{Number: 4, Name: "bytes", Kind: KindBytes, SourceType: "bytea", Nullable: true},
	}}
}

// AddMessage appends an event of a logical message; s is MessageSchema's.
func (b *Batch) AddMessage(s *Schema, prefix string, transactional bool, content []byte) {
	row := []Value{Text(prefix), Bool(transactional), TextBytes(content), Null}
	if !utf8.Valid(content) {
		row[messageContent], row[messageBytes] = Null, Bytes(content)
	}
	buf := b.Buffer()
	start := len(buf)
	buf = AppendKeyPart(buf, row[messagePrefix], false)
	keyEnd := len(buf)
	buf = AppendRow(buf, row)
	b.AddInPlace(buf, s, OpMessage, 0, start, keyEnd, keyEnd, len(buf))
}
