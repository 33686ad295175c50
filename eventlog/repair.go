package eventlog

import "context"

// Repairer takes damage out of a log. It is part of Log.
type Repairer interface {
	// SealedDamage reads what is sealed of a topic and returns the first damage
	// that it finds, matching ErrCorrupt; nil if there is none.
	SealedDamage(ctx context.Context, topic TopicID) error

	// SetAside removes the damaged record batches that lie below the offsets, one a
	// partition, for good and with whatever they held; it returns how many. The
	// caller has made the topic whole by newer records. The horizon is raised to the
	// frontier first. Damage that reaches to or above an offset is an error that
	// matches ErrCorrupt, and then nothing is removed.
	SetAside(ctx context.Context, topic TopicID, below []Offset) (batches int, err error)

	// LetGoAll durably lets go the cursors on a topic that can begin anew: they may
	// lack deletes that were set aside.
	LetGoAll(topic TopicID) error
}
