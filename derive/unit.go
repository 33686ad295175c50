package derive

import (
	"fmt"
	"slices"

	"github.com/tailwater/tailwater/change"
	"github.com/tailwater/tailwater/derive/image"
)

// unit is a compiled definition of a view, with what is needed to keep it.
type unit struct {
	record unitRecord
	stage  Stage
	needs  map[string]image.Need
	bound  Bound // nil until the images serve it
}

// newUnit compiles a view against these layouts.
func newUnit(v View, schemas Schemas) (*unit, error) {
	stage, err := v.Compile(schemas)
	if err != nil {
		return nil, err
	}
	def, err := v.Definition()
	if err != nil {
		return nil, err
	}
	u := &unit{stage: stage, needs: stage.Needs(), record: unitRecord{Definition: def, Fingerprint: stage.Info().Fingerprint}}
	for _, topic := range v.Topics() {
		s, ok := schemas(topic)
		if !ok {
			return nil, fmt.Errorf("no layout of %s", topic)
		}
		u.record.Schemas = append(u.record.Schemas, layoutRecord{Topic: topic, ID: s.ID, Layout: s.AppendLayout(nil)})
	}
	return u, nil
}

// restoreUnit compiles a kept definition against its kept layouts.
func restoreUnit(rec *unitRecord, restore func([]byte) (View, error)) (*unit, error) {
	if restore == nil {
		return nil, fmt.Errorf("nothing restores kept definitions")
	}
	v, err := restore(rec.Definition)
	if err != nil {
		return nil, err
	}
	schemas, err := rec.schemas()
	if err != nil {
		return nil, err
	}
	u, err := newUnit(v, schemas)
	if err != nil {
		return nil, err
	}
	u.record = *rec
	return u, nil
}

// broken says why the unit cannot go on with a newer layout of one of its tables; "" if it can.
func (u *unit) broken(newest *change.Schema) string {
	need, ok := u.needs[newest.Topic]
	if !ok {
		return ""
	}
	for _, number := range need.Columns {
		old := &need.Schema.Columns[need.Schema.ByNumber(number)]
		i := newest.ByNumber(number)
		switch {
		case i < 0 && newest.Column(old.Name) >= 0:
			return fmt.Sprintf("column %s of %s was replaced by one of another type (%s)", old.Name, newest.Topic,
				newest.Columns[newest.Column(old.Name)].SourceType)
		case i < 0:
			return fmt.Sprintf("column %s of %s was dropped; take it out of the view", old.Name, newest.Topic)
		case newest.Columns[i].Kind != old.Kind:
			return fmt.Sprintf("column %s of %s changed its type from %s to %s", old.Name, newest.Topic, old.SourceType, newest.Columns[i].SourceType)
		}
	}
	if !slices.Equal(keyNumbers(need.Schema), keyNumbers(newest)) {
		return fmt.Sprintf("the key of %s has other columns now", newest.Topic)
	}
	return ""
}

func keyNumbers(s *change.Schema) []uint32 {
	out := make([]uint32, len(s.Key))
	for i, k := range s.Key {
		out[i] = s.Columns[k].Number
	}
	return out
}

// bind readies the unit for these images; it stays unbound if one does not serve it.
func (u *unit) bind(tables map[string]*image.Table) error {
	u.bound = nil
	if !serves(u.needs, tables) {
		return nil
	}
	var err error
	u.bound, err = u.stage.Bind(func(topic string) *image.Table { return tables[topic] })
	return err
}

func serves(needs map[string]image.Need, tables map[string]*image.Table) bool {
	for topic, need := range needs {
		t := tables[topic]
		if t == nil || !t.Serves(need) {
			return false
		}
	}
	return true
}
