package daemon

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/tailwater/tailwater/change"
	"github.com/tailwater/tailwater/derive"
	"github.com/tailwater/tailwater/derive/join"
	"github.com/tailwater/tailwater/server"
)

// TestAwaitOutputs: who waits for the outputs of a mended view hears when they
// will not come.
func TestAwaitOutputs(t *testing.T) {
	log, _ := keyLog(t, []change.Column{column(change.KindInt)})
	def := join.Definition{Name: "v", Node: join.Node{Table: testTable, Fields: []join.Field{{Name: "a", Column: "not there"}}}}
	r, err := derive.Open(derive.Options{Log: log, StateDir: t.TempDir(), Restore: join.Restore, Views: []derive.View{join.New(def)}})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	v := &viewSet{runner: r}
	for _, tt := range []struct {
		name    string
		views   *viewSet
		pending int64
		want    string // "" for no error
	}{
		{"all is output", v, 0, ""},
		{"the view is stopped", v, -1, "not there"},
		{"the views stop", nil, -1, "why"},
		{"others run", &viewSet{}, -1, "begun anew"},
	} {
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		d := &Daemon{log: log, views: tt.views, building: "why"}
		err := d.awaitOutputs(ctx, v, "v", tt.pending)
		if tt.want == "" && err != nil || tt.want != "" && (!errors.Is(err, server.ErrUnavailable) || !strings.Contains(err.Error(), tt.want)) {
			t.Errorf("%s: %v; want %q", tt.name, err, tt.want)
		}
		cancel()
	}
}
