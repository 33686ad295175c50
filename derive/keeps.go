package derive

import (
	"bytes"
	"errors"
	"os"

	"github.com/tailwater/tailwater/derive/image"
)

// Keeps reports whether a state directory that nobody has open holds this very
// definition of a view. Such a view follows its columns by number, so that one
// whose column was renamed goes on although its text would not compile any more,
// and one whose column was dropped stops alone, with its reason.
func Keeps(stateDir string, v View) (keeps bool, err error) {
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
	return err == nil && bytes.Equal(def, rec.Current.Definition), err
}
