package local

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/blevesearch/bleve/v2"

	"github.com/tailwater/tailwater/derive/sink"
)

var stampKey = []byte("tailwater.stamp")

// config of scorch: safe batches (the default) are durable when Batch returns;
// a lock held by someone else is an error, not a wait.
var runtimeConfig = map[string]any{"bolt_timeout": "5s"}

// generation is one bleve index.
type generation struct {
	path  string
	index bleve.Index
	stamp sink.Stamp
}

var generationName = regexp.MustCompile(`^[0-9]{6}$`)

// generations lists the folders of generations, oldest first.
func generations(dir string) ([]string, error) {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read the folder of the local index: %w", err)
	}
	var names []string
	for _, e := range entries {
		if e.IsDir() && generationName.MatchString(e.Name()) {
			names = append(names, filepath.Join(dir, e.Name()))
		}
	}
	slices.Sort(names)
	return names, nil
}

// errDamaged matches a generation that only building it again can mend.
var errDamaged = errors.New("local: damaged index")

// openGeneration opens an index and reads its stamp.
func openGeneration(path string) (g *generation, err error) {
	defer func() {
		if r := recover(); r != nil { // bleve trusts its files
			g, err = nil, fmt.Errorf("%w: %s: %v", errDamaged, path, r)
		}
	}()
	index, err := bleve.OpenUsing(path, runtimeConfig)
	if err != nil {
		if strings.Contains(err.Error(), "timeout") || errors.Is(err, os.ErrPermission) {
			return nil, fmt.Errorf("open the local index %s: %w", path, err)
		}
		return nil, fmt.Errorf("%w: %s: %w", errDamaged, path, err)
	}
	raw, err := index.GetInternal(stampKey)
	if err == nil {
		var s sink.Stamp
		if s, err = sink.DecodeStamp(bytes.Clone(raw)); err == nil {
			return &generation{path: path, index: index, stamp: s}, nil
		}
	}
	return nil, errors.Join(fmt.Errorf("%w: %s: stamp: %w", errDamaged, path, err), index.Close())
}

// newGeneration makes an empty index with a stamp in it.
func newGeneration(path string, m *indexMapping, s sink.Stamp) (*generation, error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return nil, fmt.Errorf("make the folder of the local index: %w", err)
	}
	index, err := bleve.NewUsing(path, m.bleve, bleve.Config.DefaultIndexType, bleve.Config.DefaultKVStore, map[string]any{"bolt_timeout": "5s"})
	if err != nil {
		return nil, fmt.Errorf("make the local index %s: %w", path, err)
	}
	g := &generation{path: path, index: index}
	b := index.NewBatch()
	b.SetInternal(stampKey, sink.EncodeStamp(s))
	if err := index.Batch(b); err != nil {
		return nil, errors.Join(fmt.Errorf("write to the local index %s: %w", path, err), index.Close(), os.RemoveAll(path))
	}
	g.stamp = s
	return g, nil
}

func (g *generation) remove() error {
	return errors.Join(g.index.Close(), os.RemoveAll(g.path))
}
