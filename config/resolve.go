package config

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
)

// maxReferenced bounds a file named by ${file:path}.
const maxReferenced = 1 << 20

// resolver replaces references in values.
type resolver struct {
	env func(string) (string, bool)
	dir string // relative ${file:} paths start here

	worldReadable []string // referenced files that everyone may read
}

// refError says what is wrong with a reference, and the way out.
type refError struct{ message, hint string }

func (e *refError) Error() string { return e.message }

// hasRef tells whether a text holds a reference or an escape of one.
func hasRef(text string) bool { return strings.Contains(text, "${") }

// resolve replaces every reference of a text. $${ is a literal ${, and a $ that
// no { follows is itself. What a reference yields is not looked at again.
func (r *resolver) resolve(text string) (string, error) {
	var b strings.Builder
	for {
		i := strings.Index(text, "${")
		if i < 0 {
			b.WriteString(text)
			return b.String(), nil
		}
		if i > 0 && text[i-1] == '$' {
			b.WriteString(text[:i-1] + "${")
			text = text[i+2:]
			continue
		}
		b.WriteString(text[:i])
		end := strings.IndexByte(text[i:], '}')
		if end < 0 {
			return "", &refError{"a reference ${ without its }", "close it, or write $${ for a literal ${"}
		}
		v, err := r.reference(text[i+2 : i+end])
		if err != nil {
			return "", err
		}
		b.WriteString(v)
		text = text[i+end+1:]
	}
}

func (r *resolver) reference(ref string) (string, error) {
	if strings.Contains(ref, "${") {
		return "", &refError{"a reference inside a reference: ${" + ref, "name one variable, or write $${ for a literal ${"}
	}
	if path, ok := strings.CutPrefix(ref, "file:"); ok {
		return r.file(path)
	}
	name, def, hasDef := strings.Cut(ref, ":-")
	if !variableName(name) {
		return "", &refError{fmt.Sprintf("${%s} is not a reference", ref), "write ${VAR}, ${VAR:-default} or ${file:path}, or $${ for a literal ${"}
	}
	v, ok := r.env(name)
	switch {
	case hasDef && v == "":
		return def, nil
	case !ok:
		return "", &refError{fmt.Sprintf("the environment variable %s is not set", name), fmt.Sprintf("set it, or give a default: ${%s:-default}", name)}
	}
	return v, nil
}

func (r *resolver) file(path string) (string, error) {
	full := path
	if !filepath.IsAbs(full) {
		full = filepath.Join(r.dir, full)
	}
	st, err := os.Stat(full)
	if err != nil {
		return "", &refError{fmt.Sprintf("${file:%s}: %s", path, plainCause(err)), "relative paths start at the configuration file's directory"}
	}
	if !st.Mode().IsRegular() {
		return "", &refError{fmt.Sprintf("${file:%s} is not a regular file", path), ""}
	}
	text, err := readBounded(full, maxReferenced)
	if err != nil {
		return "", &refError{fmt.Sprintf("${file:%s}: %s", path, plainCause(err)), ""}
	}
	if st.Mode().Perm()&0o004 != 0 {
		r.worldReadable = append(r.worldReadable, path)
	}
	text = strings.TrimSuffix(text, "\n")
	return strings.TrimSuffix(text, "\r"), nil
}

var errTooLarge = errors.New("the file is too large")

func readBounded(path string, limit int64) (string, error) {
	f, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, limit+1))
	if err != nil {
		return "", err
	}
	if int64(len(data)) > limit {
		return "", errTooLarge
	}
	return string(data), nil
}

// plainCause is an error of the file system without its path.
func plainCause(err error) string {
	var pe *os.PathError
	if errors.As(err, &pe) {
		return pe.Err.Error()
	}
	return err.Error()
}

func variableName(s string) bool {
	for i, c := range s {
		if c != '_' && (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') && (i == 0 || c < '0' || c > '9') {
			return false
		}
	}
	return s != ""
}
