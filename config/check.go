package config

import (
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"
)

// check is what concerns several sections at once.
func (d *decoder) check(cfg *Config, o *object) {
	if !o.has("sources") || o.child("sources").kind == nullNode || o.child("sources").kind == mapNode && len(o.child("sources").entries) == 0 {
		d.problem(o.at("sources"), "there are no sources", "add one: sources: { NAME: { postgres: { dsn: \"${DSN}\", tables: [public.*] } } }")
	}
	d.notYet(cfg)
	d.checkSlots(cfg)
	d.checkTargets(cfg)
	d.checkUnused(cfg)
}

// notYet refuses options that are decoded but that nothing carries out yet: one
// that was silently passed over would store what it should have hidden. Where
// passing one over only takes more space or time, it warns.
func (d *decoder) notYet(cfg *Config) {
	for _, s := range cfg.Sources {
		if len(s.Columns) > 0 {
			d.problem(s.Columns[0].Pos, "column rules are not in this version yet: the values would be stored as they are", "leave columns out, or exclude the table")
		}
		if s.OnLimit == OnLimitResnapshot {
			d.problem(s.Pos.in(string(s.Kind)).in("on_limit"), "on_limit: resnapshot is not in this version yet", "use alert")
		}
		if s.Snapshot.Workers > 1 {
			d.warn(cfg.At(joinPath(joinPath("sources", s.Name), string(s.Kind))+".snapshot.workers"), "tables are read one chunk at a time in this version", "")
		}
	}
	for _, v := range cfg.Views {
		if v.Emit != EmitCoalesced {
			d.problem(cfg.At(joinPath("views", v.Name)+".emit"), "emit: "+v.Emit+" is not in this version yet", "use coalesced, or leave emit out")
		}
		d.wholeTables(&v.Node, cfg)
	}
}

// wholeTables refuses views of tables that are not read at the start, or of which
// old records are deleted: a document may show only what is there, never what has
// changed lately.
func (d *decoder) wholeTables(n *Node, cfg *Config) {
	check := func(t TableRef) {
		if s := cfg.Source(t.Source); s != nil && s.Snapshot.Mode == SnapshotNever {
			d.problem(t.Pos, fmt.Sprintf("the source %s has snapshot.mode: never, so that its tables are not whole and a view of them would wait for ever", s.Name), "use mode: initial")
		}
		if cfg.Log.Topic(t.String()).Cleanup == CleanupDelete {
			d.problem(t.Pos, fmt.Sprintf("log.topics deletes old records of %s: a view of it would lose rows that have not changed lately", t), "use cleanup: compact for it")
		}
	}
	check(n.Table)
	for _, r := range n.Nest {
		if r.Through != nil {
			check(r.Through.Table)
		}
		d.wholeTables(&r.Node, cfg)
	}
}

func (d *decoder) checkSlots(cfg *Config) {
	for i, s := range cfg.Sources {
		for _, t := range cfg.Sources[:i] {
			if s.Kind == Postgres && t.Kind == Postgres && s.Slot == t.Slot && sameServer(s.Address, t.Address) {
				d.problem(s.SlotPos, fmt.Sprintf("the sources %s and %s share the replication slot %s", t.Name, s.Name, quote(s.Slot)), "give one another slot:")
			}
			if s.Kind != Postgres && s.ServerID != 0 && s.ServerID == t.ServerID {
				d.problem(s.Pos, fmt.Sprintf("the sources %s and %s share the server_id %d", t.Name, s.Name, s.ServerID), "give one another server_id:")
			}
		}
	}
}

// sameServer errs to true for addresses that may be one server.
func sameServer(a, b Address) bool {
	for _, h := range a.Hosts {
		if slices.Contains(b.Hosts, h) {
			return true
		}
	}
	return a.Loopback() && b.Loopback() && len(a.Hosts) > 0 && len(b.Hosts) > 0 && a.Hosts[0].Port == b.Hosts[0].Port
}

// checkTargets reports two views that write to the same place.
func (d *decoder) checkTargets(cfg *Config) {
	seen := map[string]string{}
	for _, v := range cfg.Views {
		for _, t := range v.To {
			s := cfg.Sink(t.Sink)
			if s == nil || s.Kind == Local {
				continue
			}
			what, pos := "index "+quote(t.Index), t.Pos
			where := "search " + t.Index
			if s.Kind == Redis {
				prefix := ""
				if len(t.Key.Parts) > 0 {
					prefix = t.Key.Parts[0].Text
				}
				what, pos, where = "keys "+quote(t.Key.Text), t.Key.Pos, "redis "+strconv.Itoa(s.Redis.DB)+" "+prefix
			}
			for _, addr := range sinkAddrs(s) {
				key := addr + " " + where
				if other, ok := seen[key]; ok {
					d.problem(pos, fmt.Sprintf("the views %s and %s write to the same %s", other, v.Name, what), "give one another "+map[bool]string{true: "key:", false: "index:"}[s.Kind == Redis])
					break
				}
				seen[key] = v.Name
			}
		}
	}
}

func sinkAddrs(s *Sink) []string {
	if s.Elastic != nil {
		return s.Elastic.URLs
	}
	return s.Redis.Addrs
}

func (d *decoder) checkUnused(cfg *Config) {
	for _, s := range cfg.Sinks {
		used := slices.ContainsFunc(cfg.Views, func(v *View) bool { return v.Target(s.Name) != nil })
		if !used {
			d.warn(s.Pos, fmt.Sprintf("no view writes to the sink %s", s.Name), "name it in a view: to: { "+s.Name+": {} }")
		}
	}
}

// hostPort checks host:port and gives the host.
func (d *decoder) hostPort(n *node, text string) (host string, ok bool) {
	host, port, err := net.SplitHostPort(text)
	p, perr := strconv.Atoi(port)
	if err != nil || perr != nil || p < 0 || p > 65535 || strings.ContainsAny(host, "/ \t\n@") {
		d.problem(n.pos, fmt.Sprintf("%s is not host:port", shown(n, text)), "as in 127.0.0.1:7171")
		return "", false
	}
	return host, true
}

// checkExposed wants TLS and a token from a server that others can reach.
func (d *decoder) checkExposed(s *Server) {
	host, _, err := net.SplitHostPort(s.Listen)
	if err != nil || host != "" && isLoopback(host) {
		return
	}
	if s.Token.IsZero() && !s.InsecureNoAuth {
		d.problem(s.ListenPos, fmt.Sprintf("the server listens on %s without a token: everyone who reaches it could read all documents", s.Listen), "add server.token: \"${TOKEN}\", listen on 127.0.0.1, or say server.insecure_no_auth: true")
	}
	if s.TLSCert == "" && !s.InsecurePlaintext {
		d.problem(s.ListenPos, fmt.Sprintf("the server listens on %s without TLS", s.Listen), "add server.tls: { cert: FILE, key: FILE }, listen on 127.0.0.1, or say server.insecure_plaintext: true")
	}
	if s.InsecureNoAuth && s.Token.IsZero() {
		d.warn(s.ListenPos, "insecure_no_auth: everyone who reaches the server can read all documents", "")
	}
}

// checkSourceTLS settles the TLS mode and wants verification outside loopback.
func (d *decoder) checkSourceTLS(s *Source, o *object) {
	pos := s.DSNPos
	given := firstOf(s.TLS.Mode, s.Address.SSLMode)
	if s.TLS.Mode != "" && s.Address.SSLMode != "" && s.TLS.Mode != s.Address.SSLMode {
		d.problem(o.at("tls"), fmt.Sprintf("tls.mode is %s, the dsn says sslmode=%s", s.TLS.Mode, s.Address.SSLMode), "keep one")
	}
	loopback := s.Address.Loopback()
	switch given {
	case TLSVerifyCA, TLSVerifyFull:
	case "":
		if loopback || s.InsecurePlaintext {
			given = TLSPrefer
		} else {
			given = TLSVerifyFull
		}
	case TLSDisable, TLSPrefer, TLSRequire, "allow":
		if !loopback && !s.InsecurePlaintext {
			d.problem(pos, fmt.Sprintf("the source is not on this machine and sslmode=%s does not verify it", given), "use tls: { mode: verify-full }, or say insecure_plaintext: true")
		}
		if given == "allow" {
			given = TLSPrefer
		}
	default:
		d.problem(pos, "the dsn's sslmode is none of disable, allow, prefer, require, verify-ca, verify-full", "")
	}
	s.TLS.Mode = given
	if s.InsecurePlaintext && !loopback {
		d.warn(s.Pos, fmt.Sprintf("insecure_plaintext: the source %s may be read unencrypted", s.Name), "")
	}
}
