package main

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/tailwater/tailwater/server"
)

func (p *program) snapshotCommand() *cobra.Command {
	list := &cobra.Command{
		Use: "list", Short: "List the tables' snapshots", Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return p.snapshotList(cmd.Context()) },
	}
	var where string
	run := &cobra.Command{
		Use: "run TABLE", Short: "Read a table again while changes go on", Args: takes(1, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return p.snapshotAsk(cmd.Context(), server.SnapshotRequest{Table: args[0], Where: where})
		},
	}
	run.Flags().StringVar(&where, "where", "", "only rows for which this SQL condition holds")
	control := func(action, use, short string, least int) *cobra.Command {
		return &cobra.Command{
			Use: use, Short: short, Args: takes(least, 1),
			RunE: func(cmd *cobra.Command, args []string) error {
				return p.snapshotAsk(cmd.Context(), server.SnapshotRequest{Table: strings.Join(args, ""), Action: action})
			},
		}
	}
	pause := control("pause", "pause [TABLE]", "Read no further chunk of a table, or of all, until resume", 0)
	resume := control("resume", "resume [TABLE]", "Go on where pause ended the reading", 0)
	stop := control("stop", "stop TABLE", "Give up the snapshot of a table", 1)
	p.addrFlag(list, run, pause, resume, stop)
	return p.group("snapshot", "Read tables again", run, pause, resume, stop, list)
}

// ask makes the client of a command that needs a running daemon.
func (p *program) ask() (*client, error) {
	cfg, err := p.locate()
	if err != nil {
		return nil, err
	}
	return p.client(cfg)
}

func (p *program) snapshotAsk(ctx context.Context, req server.SnapshotRequest) error {
	cl, err := p.ask()
	if err != nil {
		return err
	}
	defer cl.Close()
	text, _, err := cl.read(ctx, "POST", "/v1/snapshots", req)
	if err != nil {
		return fmt.Errorf("snapshot %s: %w", req.Table, err)
	}
	if p.json {
		_, err := p.stdout.Write(text)
		return err
	}
	var r struct {
		Result string `json:"result"`
	}
	if err := json.Unmarshal(text, &r); err != nil {
		return fmt.Errorf("read the answer of %s: %w", cl.where, err)
	}
	fmt.Fprintln(p.stdout, printable(r.Result))
	return nil
}

func (p *program) snapshotList(ctx context.Context) error {
	cl, err := p.ask()
	if err != nil {
		return err
	}
	defer cl.Close()
	var s server.Status
	if err := cl.decode(ctx, "/v1/status", &s); err != nil {
		return err
	}
	rows := [][]string{{"TABLE", "RUN", "STATE", "ROWS", "DONE", "LEFT"}}
	for _, src := range s.Sources {
		for _, x := range src.Snapshots {
			if p.json {
				if err := p.printJSON(x); err != nil {
					return err
				}
				continue
			}
			left := ""
			if x.ETASeconds > 0 {
				left = secondsText(x.ETASeconds)
			}
			rows = append(rows, []string{printable(x.Topic), strconv.FormatUint(x.Run, 10), x.State, countText(x.Rows), strconv.FormatFloat(x.Percent, 'f', 0, 64) + " %", left})
		}
	}
	switch {
	case p.json:
		return nil
	case len(rows) == 1:
		p.say("no table has been read yet")
		return nil
	}
	return table(p.stdout, rows)
}
