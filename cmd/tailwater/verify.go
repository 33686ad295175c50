package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/tailwater/tailwater/server"
)

// verifyReport is what POST /v1/views/{view}/verify answers.
type verifyReport struct {
	View      string   `json:"view"`
	Against   string   `json:"against"`
	Compared  int64    `json:"compared"`
	Missing   []string `json:"missing"`
	Extra     []string `json:"extra"`
	Different []struct {
		ID    string   `json:"id"`
		Paths []string `json:"paths"`
	} `json:"different"`
	// Totals, where the lists were cut.
	MissingTotal   int64 `json:"missing_total"`
	ExtraTotal     int64 `json:"extra_total"`
	DifferentTotal int64 `json:"different_total"`
}

func (r *verifyReport) equal() bool {
	missing, extra, different := r.totals()
	return missing+extra+different == 0
}

func (r *verifyReport) totals() (missing, extra, different int64) {
	return max(r.MissingTotal, int64(len(r.Missing))), max(r.ExtraTotal, int64(len(r.Extra))), max(r.DifferentTotal, int64(len(r.Different)))
}

func (p *program) verifyCommand() *cobra.Command {
	var sinks []string
	var all, source bool
	var sample int
	c := &cobra.Command{
		Use:   "verify VIEW",
		Short: "Compare a view's sinks with the view, document by document",
		Long: `Compare every document of a view with what its sinks hold; all of its sinks unless
--sink names some. Exit code 1 if anything is missing, extra or different.`,
		Args: takes(1, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			switch {
			case source:
				return misuse("--source is not in this version yet; it compares sinks with the view")
			case cmd.Flags().Changed("sample"):
				return misuse("--sample is not in this version yet; every document is compared")
			}
			return p.verify(cmd.Context(), args[0], sinks)
		},
	}
	c.Flags().StringSliceVar(&sinks, "sink", nil, "compare this sink (may be repeated)")
	c.Flags().BoolVar(&all, "all", true, "compare every document")
	c.Flags().BoolVar(&source, "source", false, "compare with SQL on the source")
	c.Flags().IntVar(&sample, "sample", 0, "compare this many documents")
	p.addrFlag(c)
	return c
}

func (p *program) verify(ctx context.Context, view string, sinks []string) error {
	cfg, err := p.locate()
	if err != nil {
		return err
	}
	cl, err := p.client(cfg)
	if err != nil {
		return err
	}
	defer cl.Close()
	if len(sinks) == 0 {
		if sinks, err = p.sinksOf(ctx, cl, view); err != nil {
			return err
		}
	}
	differ := false
	for _, sink := range sinks {
		r, err := p.verifySink(ctx, cl, view, sink)
		if err != nil {
			return fmt.Errorf("verify view %s against sink %s: %w", view, sink, err)
		}
		differ = differ || !r.equal()
	}
	if differ {
		return found()
	}
	return nil
}

// sinksOf asks the daemon which sinks a view has.
func (p *program) sinksOf(ctx context.Context, cl *client, view string) ([]string, error) {
	var s server.Status
	if err := cl.decode(ctx, "/v1/status", &s); err != nil {
		return nil, err
	}
	var views, sinks []string
	for _, v := range s.Views {
		views = append(views, v.Name)
	}
	for _, x := range s.Sinks {
		if x.View == view {
			sinks = append(sinks, x.Sink)
		}
	}
	switch {
	case !contains(views, view):
		return nil, &exitError{exitFailed, fmt.Errorf("there is no view %q%s", view, suggestion(view, "view", views))}
	case len(sinks) == 0:
		return nil, misuse("no sink takes the view %s, so there is nothing to compare it with", view)
	}
	return sinks, nil
}

func (p *program) verifySink(ctx context.Context, cl *client, view, sink string) (*verifyReport, error) {
	text, _, err := cl.read(ctx, "POST", "/v1/views/"+escape(view)+"/verify", map[string]string{"sink": sink})
	if err != nil {
		return nil, err
	}
	var r verifyReport
	if err := json.Unmarshal(text, &r); err != nil {
		return nil, fmt.Errorf("read the report of %s: %w", cl.where, err)
	}
	if p.json {
		_, err := p.stdout.Write(append(bytes.TrimRight(text, "\n"), '\n'))
		return &r, err
	}
	p.printVerify(&r)
	return &r, nil
}

// shownIDs is how many differing documents verify lists for people.
const shownIDs = 20

func (p *program) printVerify(r *verifyReport) {
	word := "equal"
	if !r.equal() {
		word = p.painter().red("different")
	}
	missing, extra, different := r.totals()
	fmt.Fprintf(p.stdout, "%s: view %s against %s: %s compared, %s missing, %s extra, %s different\n", word, r.View, r.Against,
		countText(r.Compared), countText(missing), countText(extra), countText(different))
	p.listIDs("missing", r.Missing)
	p.listIDs("extra", r.Extra)
	var lines []string
	for _, d := range r.Different {
		lines = append(lines, d.ID+" in "+strings.Join(d.Paths, ", "))
	}
	p.listIDs("different", lines)
}

func (p *program) listIDs(what string, ids []string) {
	for i, id := range ids {
		if i == shownIDs {
			fmt.Fprintf(p.stdout, "  … and more; --json lists them\n")
			return
		}
		fmt.Fprintf(p.stdout, "  %s %s\n", what, printable(id))
	}
}
