package daemon

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/tailwater/tailwater/config"
	"github.com/tailwater/tailwater/derive"
	"github.com/tailwater/tailwater/derive/sink"
	"github.com/tailwater/tailwater/server"
)

// States of views that Wait and readiness look at.
const (
	viewLive    = derive.StateLive
	viewStopped = derive.StateStopped
)

// Status is the state of everything now.
func (d *Daemon) Status() server.Status {
	s := server.Status{Version: d.opts.Version, Started: d.started.UTC(), Sources: []server.SourceStatus{}, Views: []server.ViewStatus{}, Sinks: []server.SinkStatus{}}
	for _, r := range d.sources {
		st := r.status()
		s.Sources = append(s.Sources, st)
		if _, _, _, open := r.stats(); !open {
			s.Reasons = append(s.Reasons, fmt.Sprintf("source %q is %s", st.Name, withReason(st.State, st.Reason)))
		}
	}
	s.Log = d.logStatus()
	d.mu.Lock()
	v, building := d.views, d.building
	d.mu.Unlock()
	if v == nil {
		for _, view := range d.cfg.Views {
			s.Views = append(s.Views, server.ViewStatus{Name: view.Name, State: "waiting", Reason: building, LagSeconds: -1, Searchable: d.sinks.searcher(view) != nil})
			s.Reasons = append(s.Reasons, fmt.Sprintf("view %q is waiting: %s", view.Name, building))
		}
	} else {
		d.viewStatus(&s, v)
	}
	s.Notices = append(notices(d.cfg), retained(d.cfg, s.Sources)...)
	s.Notices = append(s.Notices, refused(s.Sources)...)
	for _, err := range d.log.Stats().Damaged {
		s.Notices = append(s.Notices, err.Error()+"; tailwater log check tells the way out")
	}
	s.Ready = len(s.Reasons) == 0
	return s
}

func withReason(state, reason string) string {
	if reason == "" {
		return state
	}
	return state + ": " + reason
}

func (d *Daemon) logStatus() server.LogStatus {
	st := d.log.Stats()
	age := 0.0
	if st.DirtySince > 0 {
		age = max(0, time.Since(time.UnixMicro(st.DirtySince)).Seconds())
	}
	return server.LogStatus{Laggard: laggard(st.Laggard), Compactions: st.Compactions, Removed: st.Removed, DirtyBytes: st.DirtyBytes, DirtySeconds: age, Damaged: len(st.Damaged),
		FrontierCSN: uint64(st.Frontier), AppendedBytes: st.AppendedBytes, JournalBytes: st.JournalBytes, SegmentBytes: st.SegmentBytes,
		DiskBytes: d.disk.use(d.dir.path), QuotaBytes: quota(int64(d.cfg.Log.Quota), d.dir.path), Topics: len(st.Topics)}
}

func (d *Daemon) viewStatus(s *server.Status, v *viewSet) {
	for _, x := range v.stats() {
		view := d.cfg.View(x.Name)
		if view == nil {
			continue // no longer configured; drop --unused removes it
		}
		st := server.ViewStatus{Name: x.Name, Fingerprint: x.Fingerprint, State: string(x.State), Reason: x.Reason, Documents: x.Documents, AppliedCSN: uint64(x.Applied), CompleteCSN: uint64(x.CompleteCSN),
			Pending: x.Pending, Searchable: d.sinks.searcher(view) != nil}
		switch {
		case x.CompleteCSN >= d.log.Frontier():
		case !x.LastCommit.IsZero():
			st.LagSeconds = max(0, time.Since(x.LastCommit).Seconds())
		case x.State != viewLive: // no document has ever been made
			st.LagSeconds = -1
		}
		s.Views = append(s.Views, st)
		if x.State != viewLive {
			s.Reasons = append(s.Reasons, fmt.Sprintf("view %q is %s", x.Name, withReason(string(x.State), x.Reason)))
		}
	}
	cursors := d.log.Cursors()
	for _, w := range v.list() {
		x := w.Stats()
		st := server.SinkStatus{Sink: w.sink, View: w.view, State: x.State, Reason: x.Reason, Written: x.Written, Stale: x.Stale, Rejected: x.Rejected,
			Retries: x.Retries, LagRecords: x.LagRecords, LagSeconds: x.LagSeconds, DeadLetters: x.DeadLetters}
		if cursors[sink.CheckpointName(w.sink, w.view)].LetGo {
			st.NeedsRebuild = true
			st.Reason = strings.TrimSuffix("needs rebuild, the log could not keep the deletes that it has not seen; "+x.Reason, "; ")
		}
		s.Sinks = append(s.Sinks, st)
	}
	slices.SortFunc(s.Sinks, func(a, b server.SinkStatus) int {
		if a.Sink+"/"+a.View < b.Sink+"/"+b.View {
			return -1
		}
		return 1
	})
}

// notices are what status shows in red.
func notices(cfg *config.Config) []string {
	var out []string
	for _, s := range cfg.Sources {
		if s.InsecurePlaintext && !s.Address.Loopback() {
			out = append(out, fmt.Sprintf("source %q may be read without TLS (insecure_plaintext)", s.Name))
		}
	}
	if cfg.Server.InsecureNoAuth && cfg.Server.Token.IsZero() {
		out = append(out, "the server asks for no token (server.insecure_no_auth)")
	}
	if cfg.Server.InsecurePlaintext && cfg.Server.TLSCert == "" {
		out = append(out, "the server speaks plain HTTP (server.insecure_plaintext)")
	}
	return out
}

// retained is what on_limit: alert says: sources for which the server keeps more log than it should.
func retained(cfg *config.Config, sources []server.SourceStatus) []string {
	var out []string
	for _, s := range sources {
		limit := cfg.Source(s.Name).MaxRetainedWAL
		if limit > 0 && s.RetainedBytes > int64(limit) {
			out = append(out, fmt.Sprintf("the server keeps %s of log for source %q, more than max_retained_wal", config.Size(s.RetainedBytes), s.Name))
		}
	}
	return out
}

// refused names the sources whose newest signal was not obeyed.
func refused(sources []server.SourceStatus) []string {
	var out []string
	for _, s := range sources {
		if n := len(s.Signals); n > 0 && s.Signals[n-1].Refused != "" {
			sig := s.Signals[n-1]
			out = append(out, fmt.Sprintf("the signal at %s of source %q was refused: %s", sig.Position, s.Name, sig.Refused))
		}
	}
	return out
}

func sourceKinds(cfg *config.Config) map[string]string {
	kinds := map[string]string{}
	for _, s := range cfg.Sources {
		kinds[s.Name] = string(s.Kind)
	}
	return kinds
}
