package elastic

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"regexp"
	"strings"

	"github.com/elastic/go-elasticsearch/v8/esapi"

	"github.com/tailwater/tailwater/derive/sink"
)

// answerError is an answer that is no success.
type answerError struct {
	status int
	kind   string // error.type
	reason string // without values
}

func (e *answerError) Error() string {
	text := fmt.Sprintf("the search server answers %d", e.status)
	if e.kind != "" {
		text += " " + e.kind
	}
	if e.reason != "" {
		text += ": " + e.reason
	}
	return text
}

// notFound reports an index or alias that is not there.
func notFound(err error) bool {
	var a *answerError
	return errors.As(err, &a) && a.status == http.StatusNotFound
}

// do sends a request and decodes its answer into v, where that is not nil.
func (s *Sink) do(ctx context.Context, req esapi.Request, v any) error {
	t, err := s.transport()
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, s.opts.Timeout)
	defer cancel()
	res, err := req.Do(ctx, t)
	if err != nil {
		return redact(err)
	}
	defer func() {
		_, _ = io.Copy(io.Discard, io.LimitReader(res.Body, 1<<20)) // so that the connection is used again
		res.Body.Close()
	}()
	if res.StatusCode > 299 {
		return classify(readError(res))
	}
	if v == nil {
		return nil
	}
	dec := json.NewDecoder(res.Body)
	if err := dec.Decode(v); err != nil {
		return fmt.Errorf("read the search server's answer: %w", err)
	}
	return nil
}

// redact takes the URL, which may hold what nobody should read, out of an error of net/http.
func redact(err error) error {
	var u *url.Error
	if errors.As(err, &u) {
		return u.Err
	}
	return err
}

// readError reads the answer's error: an object, or just a text.
func readError(res *esapi.Response) *answerError {
	e := &answerError{status: res.StatusCode}
	body, err := io.ReadAll(io.LimitReader(res.Body, 64<<10))
	if err != nil {
		return e
	}
	var answer struct {
		Error json.RawMessage `json:"error"`
	}
	if json.Unmarshal(body, &answer) != nil {
		return e
	}
	var detail itemError
	if json.Unmarshal(answer.Error, &detail) == nil {
		e.kind, e.reason = detail.Type, withoutValues(detail.Reason)
		return e
	}
	_ = json.Unmarshal(answer.Error, &e.reason)
	e.reason = withoutValues(e.reason)
	return e
}

// classify gives errors that a person must mend, with the way out.
func classify(e *answerError) error {
	switch {
	case e.status == http.StatusUnauthorized:
		return fmt.Errorf("%w: %w; check username and password, or api_key", sink.ErrStopped, e)
	case e.status == http.StatusForbidden && !strings.Contains(e.kind, "cluster_block"):
		return fmt.Errorf("%w: %w; on the indexes ALIAS and ALIAS-* the user needs create_index, delete_index, manage, read and write", sink.ErrStopped, e)
	}
	return e
}

// itemError is an error as the servers write it.
type itemError struct {
	Type   string `json:"type"`
	Reason string `json:"reason"`
}

var (
	quoted  = regexp.MustCompile(`'[^']*'|"[^"]*"`)
	numbers = regexp.MustCompile(`\([^()]*\)`)
)

// withoutValues cuts values of a document out of a server's reason: previews,
// terms, everything quoted or in parentheses. Names of fields, which are in brackets, stay.
func withoutValues(reason string) string {
	for _, cut := range []string{"Preview of field's value", "The prefix of the first", "in document with id"} {
		if i := strings.Index(reason, cut); i >= 0 {
			reason = reason[:i]
		}
	}
	reason = quoted.ReplaceAllString(reason, "'…'")
	reason = numbers.ReplaceAllString(reason, "(…)")
	if i := strings.IndexAny(reason, `'"`); i >= 0 && strings.Count(reason, "'…'")*2 != strings.Count(reason, "'") {
		reason = reason[:i] // a quote without its end
	}
	if len(reason) > 300 {
		reason = strings.ToValidUTF8(reason[:300], "") + "…"
	}
	return strings.TrimRight(reason, " .")
}
