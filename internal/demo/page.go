package demo

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os/exec"
	"strings"
	"time"
)

// word is in the names of some products of every seed.
const word = "desk"

var client = http.Client{Timeout: 5 * time.Second}

// fetch reads a page of the daemon; another status than 200 is an error.
func (r *runner) fetch(ctx context.Context, path string) ([]byte, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+r.opts.Listen+path, nil)
	if err != nil {
		return nil, err
	}
	resp, err := client.Do(req)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err == nil && resp.StatusCode != http.StatusOK {
		err = fmt.Errorf("GET %s: status %d", path, resp.StatusCode)
	}
	return body, err
}

// document reads one document as the daemon serves it.
func (r *runner) document(ctx context.Context, id string) (json.RawMessage, error) {
	return r.fetch(ctx, "/v1/views/"+View+"/docs/"+url.PathEscape(id))
}

// search returns the ids that the local index finds.
func (r *runner) search(ctx context.Context, words string) ([]string, error) {
	body, err := r.fetch(ctx, "/v1/views/"+View+"/search?q="+url.QueryEscape(words))
	if err != nil {
		return nil, err
	}
	var answer struct{ Hits []struct{ ID string } }
	if err := json.Unmarshal(body, &answer); err != nil {
		return nil, fmt.Errorf("read the search's answer: %w", err)
	}
	ids := make([]string, len(answer.Hits))
	for i, h := range answer.Hits {
		ids[i] = h.ID
	}
	return ids, nil
}

// awaitFirst returns the id of a document that a search finds and that every
// kind of join has filled.
func (r *runner) awaitFirst(ctx context.Context) (string, error) {
	var first string
	err := poll(ctx, 2*time.Minute, func() error {
		if err := r.daemon.alive(); err != nil {
			return &finalError{err}
		}
		ids, err := r.search(ctx, word)
		if err != nil {
			return err
		}
		for _, id := range ids {
			if doc, err := r.document(ctx, id); err == nil && isJoined(doc) {
				first = id
				return nil
			}
		}
		return fmt.Errorf("%d documents are found and none is joined", len(ids))
	})
	if err != nil {
		return "", fmt.Errorf("wait for the first document: %w", err)
	}
	r.say("First searchable joined document after %.1f s.", time.Since(r.began).Seconds())
	return first, nil
}

// awaitFilled waits until the index holds everything, so that what the guide
// invites to is true, and tells how far it is meanwhile.
func (r *runner) awaitFilled(ctx context.Context) error {
	told := time.Now()
	err := poll(ctx, 10*time.Minute, func() error {
		if err := r.daemon.alive(); err != nil {
			return &finalError{err}
		}
		body, err := r.fetch(ctx, "/v1/status")
		if err != nil {
			return err
		}
		var s struct {
			Sinks []struct {
				Sink, State string
				Written     int64
			}
		}
		if err := json.Unmarshal(body, &s); err != nil {
			return fmt.Errorf("read the status: %w", err)
		}
		for _, x := range s.Sinks {
			if x.Sink == Sink && x.State == "live" {
				return nil
			}
			if x.Sink == Sink && time.Since(told) > 5*time.Second {
				told = time.Now()
				r.say("The index is still filling: %d documents.", x.Written)
			}
		}
		return errors.New("the index is still filling")
	})
	if err != nil {
		return fmt.Errorf("wait for the index: %w", err)
	}
	r.say("The index holds every document after %.1f s.", time.Since(r.began).Seconds())
	return nil
}

// isJoined tells a document that every kind of join has filled: it has a brand
// with a country, a review and a category.
func isJoined(doc []byte) bool {
	var d struct {
		Brand *struct {
			Country *struct{ Code string }
		}
		Reviews    []struct{}
		Categories []struct{}
	}
	return json.Unmarshal(doc, &d) == nil && d.Brand != nil && d.Brand.Country != nil && len(d.Reviews) > 0 && len(d.Categories) > 0
}

// show runs the demo for a person, until ctx ends or the daemon or the traffic does.
func (r *runner) show(ctx context.Context) error {
	if err := r.daemon.start(); err != nil {
		return err
	}
	r.say("Tailwater starts; its log is %s", r.daemon.log)
	if err := r.daemon.awaitReady(ctx); err != nil {
		return err
	}
	id, err := r.awaitFirst(ctx)
	if err != nil {
		return err
	}
	if err := r.awaitFilled(ctx); err != nil {
		return err
	}
	r.say("%s", r.guide(id))
	select {
	case <-ctx.Done():
		r.say("\nStopping.")
		return nil
	case <-r.daemon.done:
		return r.daemon.alive()
	}
}

// guide says where to look and what to try.
func (r *runner) guide(id string) string {
	page := "http://" + r.opts.Listen
	docPath := "/v1/views/" + View + "/docs/" + id
	return fmt.Sprintf(`
  %[1]s/

The shop changes all the time (%[2]g transactions a second). Three things to try:

  1. Open the page and search for: %[3]s
     The results change while you look. Or: curl -s '%[1]s/v1/views/%[4]s/search?q=%[3]s'
  2. See one product with its brand, country, reviews and categories joined:
     curl -s %[1]s%[5]s
  3. Change it at the source, and search for "bargain":
     %[6]s

Ctrl-C stops everything.`, page, r.opts.Rate, word, View, docPath, r.updateCommand(id))
}

// updateCommand is the command line that changes the product. A DSN with a
// password is not printed.
func (r *runner) updateCommand(id string) string {
	sql := "update products set name = 'Bargain ' || name where id = " + id
	if _, err := exec.LookPath("psql"); err != nil {
		return sql + ";   (in a client of yours: there is no psql on this machine)"
	}
	dsn := r.opts.DSN
	if u, err := url.Parse(dsn); err != nil || u.User == nil || hasPassword(u) || strings.Contains(dsn, "password") {
		dsn = "$YOUR_DSN"
	}
	return fmt.Sprintf(`psql "%s" -c "%s"`, dsn, sql)
}

func hasPassword(u *url.URL) bool {
	_, set := u.User.Password()
	return set
}
