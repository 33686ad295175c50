package postgres

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/tailwater/tailwater/connectors"
)

// connConfig parses the DSN and applies the TLS options and policy.
func connConfig(o *Options) (*pgconn.Config, error) {
	dsn, mode, err := addTLS(o)
	if err != nil {
		return nil, err
	}
	cfg, err := pgconn.ParseConfig(dsn)
	if err != nil {
		return nil, parseError(o, err)
	}
	if cfg.ConnectTimeout == 0 {
		cfg.ConnectTimeout = 15 * time.Second
	}
	if o.TLS.ServerName != "" {
		setServerName(cfg, o.TLS.ServerName)
	}
	if err := checkTLS(o, cfg, mode); err != nil {
		return nil, err
	}
	return cfg, nil
}

// addTLS puts the TLS options into the DSN, and returns its sslmode.
func addTLS(o *Options) (dsn, mode string, err error) {
	settings := map[string]string{"sslmode": o.TLS.Mode, "sslrootcert": o.TLS.CA, "sslcert": o.TLS.Cert, "sslkey": o.TLS.Key}
	dsn = o.DSN
	if isURL(dsn) {
		u, err := url.Parse(dsn)
		if err != nil {
			return "", "", fmt.Errorf("dsn of source %s is no URL (%s): write postgres://USER:PASSWORD@HOST:PORT/DATABASE with special characters of the password percent-encoded: %w",
				o.Source, urlReason(err), connectors.ErrPrerequisite)
		}
		q := u.Query()
		for k, v := range settings {
			if v != "" {
				q.Set(k, v)
			}
		}
		mode = effectiveMode(q.Get("sslmode"), hostsOf(u.Host, q.Get("host")), o)
		if mode != "" {
			q.Set("sslmode", mode)
		}
		u.RawQuery = q.Encode()
		return u.String(), mode, nil
	}
	for _, k := range []string{"sslmode", "sslrootcert", "sslcert", "sslkey"} {
		if settings[k] != "" {
			dsn += " " + k + "='" + strings.NewReplacer(`\`, `\\`, `'`, `\'`).Replace(settings[k]) + "'"
		}
	}
	mode = effectiveMode(keyword(dsn, "sslmode"), hostsOf("", keyword(dsn, "host")), o)
	if mode != "" && keyword(dsn, "sslmode") == "" {
		dsn += " sslmode=" + mode
	}
	return dsn, mode, nil
}

func isURL(dsn string) bool {
	return strings.HasPrefix(dsn, "postgres://") || strings.HasPrefix(dsn, "postgresql://")
}

// urlReason returns why a URL does not parse, without the URL.
func urlReason(err error) string {
	var e *url.Error
	if errors.As(err, &e) {
		if strings.Contains(e.Err.Error(), "userinfo") {
			return "user or password has characters that must be percent-encoded"
		}
		if strings.Contains(e.Err.Error(), "port") {
			return "the port is no number, or a character of the password is not percent-encoded"
		}
	}
	return "it cannot be parsed"
}

// keyword returns a value of a keyword DSN, the last one given.
func keyword(dsn, name string) string {
	value := ""
	for _, f := range strings.Fields(dsn) {
		if k, v, ok := strings.Cut(f, "="); ok && k == name {
			value = strings.Trim(v, "'")
		}
	}
	return value
}

func hostsOf(authority, param string) []string {
	list := authority
	if param != "" {
		list = param
	}
	if list == "" {
		list = os.Getenv("PGHOST")
	}
	var hosts []string
	for _, h := range strings.Split(list, ",") {
		if host, _, err := net.SplitHostPort(h); err == nil {
			h = host
		}
		hosts = append(hosts, strings.Trim(h, "[]"))
	}
	return hosts
}

// effectiveMode is the sslmode as given, else verify-full beyond this machine.
func effectiveMode(given string, hosts []string, o *Options) string {
	if given == "" {
		given = os.Getenv("PGSSLMODE")
	}
	if given != "" || o.InsecurePlaintext {
		return given
	}
	if slices.ContainsFunc(hosts, func(h string) bool { return !isLoopback(h) }) {
		return "verify-full"
	}
	return ""
}

func isLoopback(host string) bool {
	if host == "" || host == "localhost" || strings.HasPrefix(host, "/") || strings.HasPrefix(host, "@") {
		return true
	}
	ip, err := netip.ParseAddr(host)
	return err == nil && ip.IsLoopback()
}

func setServerName(cfg *pgconn.Config, name string) {
	set := func(c *tls.Config) {
		if c != nil {
			c.ServerName = name
		}
	}
	set(cfg.TLSConfig)
	for _, f := range cfg.Fallbacks {
		set(f.TLSConfig)
	}
}

// checkTLS refuses a connection beyond this machine that could go without TLS
// or without verifying the server.
func checkTLS(o *Options, cfg *pgconn.Config, mode string) error {
	if o.InsecurePlaintext {
		return nil
	}
	verified := mode == "verify-full" || mode == "verify-ca"
	hosts := []string{cfg.Host}
	for _, f := range cfg.Fallbacks {
		hosts = append(hosts, f.Host)
	}
	for _, h := range hosts {
		if !isLoopback(h) && !verified {
			return fmt.Errorf("source %s: sslmode=%s does not verify who answers at %s: use sslmode=verify-full (with sslrootcert=FILE for a private authority), or set insecure_plaintext: true: %w",
				o.Source, mode, h, connectors.ErrPrerequisite)
		}
	}
	return nil
}

// parseError turns pgconn's error, whose text may hold the DSN, into ours.
func parseError(o *Options, err error) error {
	reason := "it cannot be parsed"
	if inner := errors.Unwrap(err); inner != nil && !strings.Contains(inner.Error(), o.DSN) {
		reason = scrub(o, inner.Error())
	}
	return fmt.Errorf("dsn of source %s: %s: write postgres://USER:PASSWORD@HOST:PORT/DATABASE: %w", o.Source, reason, connectors.ErrPrerequisite)
}

// scrub takes the password out of a text.
func scrub(o *Options, text string) string {
	for _, secret := range secrets(o.DSN) {
		text = strings.ReplaceAll(text, secret, "xxxxx")
	}
	return text
}

// secrets returns the passwords of a DSN in the spellings in which they may turn up.
func secrets(dsn string) []string {
	var list []string
	add := func(s string) {
		if s != "" {
			list = append(list, s)
		}
	}
	if u, err := url.Parse(dsn); err == nil && isURL(dsn) {
		if p, ok := u.User.Password(); ok {
			add(p)
			add(url.QueryEscape(p))
			add(url.PathEscape(p))
		}
		add(u.Query().Get("password"))
		add(u.Query().Get("sslpassword"))
	}
	add(keyword(dsn, "password"))
	add(keyword(dsn, "sslpassword"))
	return list
}

// connectError says in one line what failed and the way out. A wrong password
// or database wraps ErrPrerequisite; what time may heal does not.
func connectError(o *Options, cfg *pgconn.Config, err error) error {
	at := net.JoinHostPort(cfg.Host, fmt.Sprint(cfg.Port))
	var pe *pgconn.PgError
	if errors.As(err, &pe) {
		return serverRefused(o, cfg, at, pe)
	}
	if errors.Is(err, context.Canceled) {
		return fmt.Errorf("connect to PostgreSQL at %s: %w", at, context.Canceled)
	}
	return fmt.Errorf("%w: connect to PostgreSQL at %s for source %s: %s: is the server running, the address right and the port open?",
		connectors.ErrUnreachable, at, o.Source, netReason(o, err))
}

func serverRefused(o *Options, cfg *pgconn.Config, at string, pe *pgconn.PgError) error {
	const form = "source %s: PostgreSQL at %s refuses user %q on database %q: %s: %s%w"
	hint, permanent := "", true
	switch pe.Code {
	case "28P01":
		hint = "check user and password of the dsn: "
	case "28000":
		hint = "check the user of the dsn, or CREATE ROLE " + quoteName(cfg.User) + " LOGIN REPLICATION: "
		if strings.Contains(pe.Message, "pg_hba.conf") {
			hint = "pg_hba.conf must let this user in (for replication the database counts, not the word replication), with TLS if it says hostssl: "
		}
	case "3D000":
		hint = "check the database name of the dsn: "
	case "42501":
		hint = fmt.Sprintf("ALTER ROLE %s REPLICATION, or on a managed service its replication role, and GRANT CONNECT ON DATABASE: ", quoteName(cfg.User))
	default:
		permanent = false
	}
	if !permanent {
		return fmt.Errorf("source %s: PostgreSQL at %s: %s: %w", o.Source, at, scrub(o, pe.Message), pe)
	}
	return fmt.Errorf(form, o.Source, at, cfg.User, cfg.Database, scrub(o, pe.Message), hint, connectors.ErrPrerequisite)
}

// netReason is the innermost error's text: pgconn repeats the configuration around it.
func netReason(o *Options, err error) string {
	if errors.Is(err, context.DeadlineExceeded) {
		return "no answer in time"
	}
	var op *net.OpError
	if errors.As(err, &op) {
		return scrub(o, op.Err.Error())
	}
	var dns *net.DNSError
	if errors.As(err, &dns) {
		return "host name " + dns.Name + " is unknown"
	}
	for inner := errors.Unwrap(err); inner != nil; inner = errors.Unwrap(inner) {
		err = inner
	}
	return scrub(o, err.Error())
}
