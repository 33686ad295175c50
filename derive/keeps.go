package derive

import (
	"bytes"
	"errors"
	"fmt"
	"os"

	"github.com/tailwater/tailwater/derive/image"
)

// Keeps reports whether a state directory that nobody has open holds this very
// definition of a view and can go on with it over the newest layouts. Such a view
// follows its columns by number, so that one whose column was renamed goes on
// although its text would not compile any more.
func Keeps(stateDir string, v View, newest Schemas) (keeps bool, err error) {
	if _, err := os.Stat(stateDir); err != nil {
		return false, nil // nothing was kept yet
	}
	store, err := image.OpenStore(stateDir, image.Options{ReadOnly: true})
	if err != nil {
		return false, err
	}
	snap := store.Snapshot()
	defer func() { err = errors.Join(err, snap.Close(), store.Close()) }()
	var rec viewRecord
	ok, err := recall(snap, memView+v.Name(), &rec)
	if err != nil || !ok || rec.Current == nil {
		return false, err
	}
	def, err := v.Definition()
	if err != nil || !bytes.Equal(def, rec.Current.Definition) {
		return false, err
	}
	u, err := restoreUnit(rec.Current, func([]byte) (View, error) { return v, nil })
	if err != nil {
		return false, fmt.Errorf("kept definition of view %s: %w", v.Name(), err)
	}
	for topic := range u.needs {
		if s, ok := newest(topic); ok && u.broken(s) != "" {
			return false, nil
		}
	}
	return true, nil
}
