package daemon

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"

	"github.com/tailwater/tailwater/config"
	"github.com/tailwater/tailwater/derive"
	"github.com/tailwater/tailwater/derive/join"
	"github.com/tailwater/tailwater/eventlog"
	"github.com/tailwater/tailwater/eventlog/seglog"
	"github.com/tailwater/tailwater/server"
)

// Offline reads the data directory of a daemon that does not run: the log, and
// the views as far as they had come. It takes no lock and writes nothing.
type Offline struct {
	*LogReader
	cfg   *config.Config
	views *derive.Runner // opened at its first use
}

// OpenOffline opens the log of a data directory.
func OpenOffline(cfg *config.Config) (*Offline, error) {
	path := filepath.Join(cfg.DataDir, "log")
	if !exists(path) {
		return nil, noLog(cfg)
	}
	log, err := seglog.OpenReadOnly(path, seglog.Options{})
	if err != nil {
		return nil, dirError(err)
	}
	return &Offline{LogReader: NewLogReader(log, sourceKinds(cfg)), cfg: cfg}, nil
}

func (o *Offline) reader() (*derive.Runner, error) {
	if o.views == nil {
		r, err := derive.OpenReadOnly(filepath.Join(o.cfg.DataDir, "state"), join.Restore)
		if err != nil {
			return nil, fmt.Errorf("open the views' state: %w", err)
		}
		o.views = r
	}
	return o.views, nil
}

func (o *Offline) Views(context.Context) ([]server.ViewStatus, error) {
	r, err := o.reader()
	if err != nil {
		return nil, err
	}
	list := []server.ViewStatus{}
	for _, x := range r.Stats() {
		list = append(list, server.ViewStatus{Name: x.Name, State: "stopped", Reason: "the daemon does not run", Documents: x.Documents, AppliedCSN: uint64(x.Applied), CompleteCSN: uint64(x.CompleteCSN), Pending: x.Pending})
	}
	return list, nil
}

func (o *Offline) Get(_ context.Context, view, id string) ([]byte, uint64, error) {
	r, err := o.reader()
	if err != nil {
		return nil, 0, err
	}
	doc, ok, err := r.Get(view, id)
	if err != nil {
		return nil, 0, viewError(err)
	}
	if !ok {
		return nil, 0, fmt.Errorf("%w: view %q has no document %q", server.ErrNotFound, view, id)
	}
	return doc.JSON, doc.Version, nil
}

func (o *Offline) Dump(ctx context.Context, view string, fn func(id string, version uint64, doc []byte) error) error {
	r, err := o.reader()
	if err != nil {
		return err
	}
	return viewError(r.Dump(view, func(d derive.Doc) error {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		return fn(d.ID, d.Version, d.JSON)
	}))
}

func (o *Offline) Close() error {
	var err error
	if o.views != nil {
		err = o.views.Close()
	}
	return errors.Join(err, o.log.Close())
}

var _ eventlog.Log = (*seglog.Log)(nil)
