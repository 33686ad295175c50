package config

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"strconv"
	"strings"
)

var dsnSchemes = map[string]SourceKind{
	"postgres": Postgres, "postgresql": Postgres, "mysql": MySQL, "mariadb": MariaDB,
}

// dsn reads and checks a source's address. No message holds any of its text.
func (d *decoder) dsn(o *object, s *Source) {
	s.DSNPos = o.at("dsn")
	example := fmt.Sprintf("as in %s://user:password@host:port/database", s.Kind)
	n := o.child("dsn")
	if n == nil {
		d.problem(o.pos, "the source has no dsn", "add dsn: \"${"+envName(s.Name)+"_DSN}\", "+example)
		return
	}
	s.DSNPos = n.pos
	text, ok := d.value(n)
	if !ok {
		return
	}
	s.DSN = NewSecret(text)
	kind, addr, err := parseDSN(text)
	if err != nil {
		d.problem(n.pos, "the dsn cannot be used: "+err.Error(), example)
		return
	}
	if kind != s.Kind {
		d.problem(n.pos, fmt.Sprintf("the dsn is for %s, the source is %s", kind, s.Kind), "change one of them")
	}
	s.Address = addr
	if !hasRef(n.text) && strings.Contains(text, "@") && strings.Contains(text[:strings.LastIndex(text, "@")], ":") {
		if u, err := url.Parse(text); err == nil && u.User != nil {
			if _, has := u.User.Password(); has {
				d.warn(n.pos, "a password stands in the file", "use a reference: ${VAR} or ${file:path}")
			}
		}
	}
}

func envName(name string) string {
	return strings.ToUpper(strings.ReplaceAll(name, "-", "_"))
}

// parseDSN splits scheme://user:password@host:port,host:port/database?params.
// Its errors never hold a part of the text beyond scheme and port.
func parseDSN(text string) (SourceKind, Address, error) {
	var a Address
	if text == "" {
		return "", a, errors.New("it is empty")
	}
	scheme, rest, ok := strings.Cut(text, "://")
	kind, known := dsnSchemes[scheme]
	if !ok {
		return "", a, errors.New("it is no URL")
	}
	if !known {
		return "", a, errors.New("its scheme is none of postgres, mysql, mariadb")
	}
	if strings.ContainsAny(rest, " \t\r\n\x00#") {
		return kind, a, errors.New("it has a blank, a line break or a # in it; write them as %20, %0A and %23")
	}
	rest, query, _ := strings.Cut(rest, "?")
	authority, path, _ := strings.Cut(rest, "/")
	params, err := url.ParseQuery(query)
	if err != nil {
		return kind, a, errors.New("its parameters behind ? are not NAME=VALUE&…")
	}
	if i := strings.LastIndexByte(authority, '@'); i >= 0 {
		user, password, _ := strings.Cut(authority[:i], ":")
		if a.User, err = url.PathUnescape(user); err != nil {
			return kind, a, errors.New("its user has a % that starts no escape; write % as %25")
		}
		if _, err = url.PathUnescape(password); err != nil {
			return kind, a, errors.New("its password has a % that starts no escape; write % as %25")
		}
		authority = authority[i+1:]
	}
	if a.Database, err = url.PathUnescape(path); err != nil || strings.Contains(path, "/") {
		return kind, a, errors.New("its database is not one name; in user and password write / as %2F, ? as %3F and @ as %40")
	}
	if a.Hosts, err = parseHosts(authority, params); err != nil {
		return kind, a, err
	}
	if _, err := url.Parse(text); err != nil {
		return kind, a, errors.New("a character of its user or password must be percent-encoded, or its host is no name and no address")
	}
	a.User = firstOf(a.User, params.Get("user"))
	a.Database = firstOf(a.Database, params.Get("dbname"))
	a.SSLMode = firstOf(params.Get("sslmode"), params.Get("tls"))
	return kind, a, nil
}

func parseHosts(authority string, params url.Values) ([]HostPort, error) {
	if authority == "" {
		authority = params.Get("host")
		if strings.HasPrefix(authority, "/") {
			return []HostPort{{Host: authority}}, nil
		}
	}
	if authority == "" {
		return []HostPort{{Host: "localhost"}}, nil
	}
	var out []HostPort
	for _, part := range strings.Split(authority, ",") {
		h, err := parseHostPort(part)
		if err != nil {
			return nil, err
		}
		out = append(out, h)
	}
	return out, nil
}

func parseHostPort(text string) (HostPort, error) {
	host, port := text, ""
	if i := strings.LastIndexByte(text, ':'); i >= 0 && !strings.Contains(text[i:], "]") {
		host, port = text[:i], text[i+1:]
	}
	host = strings.TrimSuffix(strings.TrimPrefix(host, "["), "]")
	if unescaped, err := url.PathUnescape(host); err == nil {
		host = unescaped
	}
	if strings.Contains(host, ":") {
		if _, err := netip.ParseAddr(host); err != nil {
			return HostPort{}, errors.New("its host is no name and no address; in user and password write : as %3A and @ as %40")
		}
	}
	if port == "" {
		return HostPort{Host: host}, nil
	}
	n, err := strconv.Atoi(port)
	if err != nil || n < 1 || n > 65535 {
		return HostPort{}, errors.New("its port is not a number between 1 and 65535")
	}
	return HostPort{Host: host, Port: n}, nil
}

// String is host:port.
func (h HostPort) String() string {
	if h.Port == 0 {
		return h.Host
	}
	return net.JoinHostPort(h.Host, strconv.Itoa(h.Port))
}

// isLoopback tells a host that is this machine: a loopback address, localhost,
// a unix socket's directory or nothing at all.
func isLoopback(host string) bool {
	host = strings.TrimSuffix(strings.TrimPrefix(host, "["), "]")
	if host == "" || host == "localhost" || strings.HasPrefix(host, "/") || strings.HasSuffix(host, ".localhost") {
		return true
	}
	a, err := netip.ParseAddr(host)
	return err == nil && a.Unmap().IsLoopback()
}
