package main

import (
	"bytes"
	"context"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/tailwater/tailwater/change"
	"github.com/tailwater/tailwater/config"
	"github.com/tailwater/tailwater/server"
)

func (p *program) viewCommand() *cobra.Command {
	list := &cobra.Command{
		Use: "list", Short: "List the views", Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return p.with(cmd, p.viewList) },
	}
	dump := &cobra.Command{
		Use: "dump VIEW", Short: "Print all documents of a view in key order", Args: takes(1, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return p.with(cmd, func(ctx context.Context, s store) error { return p.viewDump(ctx, s, args[0]) })
		},
	}
	rebuild := &cobra.Command{
		Use: "rebuild VIEW", Short: "Send every document of a view to its sinks again", Args: takes(1, 1),
		Long: `Send every document of a view to its sinks again, whatever they hold, and take over
targets that another log wrote to. Search indexes get a new generation behind their
alias; in Redis, keys that are no documents are deleted at the end.`,
		RunE: func(cmd *cobra.Command, args []string) error { return p.viewRebuild(cmd.Context(), args[0]) },
	}
	p.addrFlag(list, dump, rebuild)
	return p.group("view", "Read the views",
		list, p.viewGetCommand(), dump, rebuild)
}

func (p *program) viewRebuild(ctx context.Context, view string) error {
	cl, err := p.ask()
	if err != nil {
		return err
	}
	defer cl.Close()
	text, _, err := cl.read(ctx, "POST", "/v1/views/"+escape(view)+"/rebuild", nil)
	if err != nil {
		return fmt.Errorf("rebuild view %s: %w", view, err)
	}
	if p.json {
		_, err := p.stdout.Write(text)
		return err
	}
	p.say("the sinks of view %s take every document again; tailwater status shows how far they are", printable(view))
	return nil
}

// with opens the store for a command and closes it.
func (p *program) with(cmd *cobra.Command, fn func(context.Context, store) error) error {
	s, err := p.open(cmd.Context())
	if err != nil {
		return err
	}
	defer s.Close()
	return fn(cmd.Context(), s)
}

func (p *program) viewGetCommand() *cobra.Command {
	var key string
	c := &cobra.Command{
		Use:   "get VIEW KEY",
		Short: "Print one document",
		Long: `Print one document. KEY is the document's id as view dump prints it. With --key the
parts of the root's key are given as CSV instead, which also finds documents whose id
is hashed.`,
		Args: takes(1, 2),
		RunE: func(cmd *cobra.Command, args []string) error {
			id := key
			switch {
			case len(args) == 2 && key != "":
				return misuse("give KEY or --key, not both")
			case len(args) == 2:
				id = args[1]
			case key == "":
				return misuse("name the document: tailwater view get VIEW KEY")
			default:
				parts, err := csv.NewReader(strings.NewReader(key)).Read()
				if err != nil {
					return misuse("--key %q is not CSV: %w", key, err)
				}
				if id, err = documentID(parts); err != nil {
					return err
				}
			}
			return p.with(cmd, func(ctx context.Context, s store) error { return p.viewGet(ctx, s, args[0], id) })
		},
	}
	c.Flags().StringVar(&key, "key", "", "the key's parts, as CSV")
	p.addrFlag(c)
	return c
}

// documentID is the id of the document whose root has a key of these parts.
func documentID(parts []string) (string, error) {
	var key change.Key
	for _, part := range parts {
		key = change.AppendKeyPart(key, change.Text(part), false)
	}
	id, err := change.DocumentID(key)
	if err != nil {
		return "", fmt.Errorf("make the document's id: %w", err)
	}
	return id, nil
}

func (p *program) viewGet(ctx context.Context, s store, view, id string) error {
	doc, version, err := s.Get(ctx, view, id)
	if err != nil {
		return p.viewError(ctx, s, view, err)
	}
	if p.json {
		return p.dumpLine(id, version, doc)
	}
	var b bytes.Buffer
	if err := json.Indent(&b, doc, "", "  "); err != nil {
		return fmt.Errorf("the document is no JSON: %w", err)
	}
	b.WriteByte('\n')
	_, err = p.stdout.Write(b.Bytes())
	return err
}

func (p *program) dumpLine(id string, version uint64, doc []byte) error {
	_, err := p.stdout.Write(server.AppendDumpLine(nil, id, version, doc))
	return err
}

func (p *program) viewDump(ctx context.Context, s store, view string) error {
	out := newLineWriter(p.stdout)
	var line []byte
	err := s.Dump(ctx, view, func(id string, version uint64, doc []byte) error {
		if p.json {
			line = server.AppendDumpLine(line[:0], id, version, doc)
			return out.write(line)
		}
		line = append(append(append(line[:0], printable(id)...), '\t'), doc...)
		return out.write(append(line, '\n'))
	})
	if ferr := out.flush(); err == nil {
		err = ferr
	}
	return p.viewError(ctx, s, view, err)
}

// viewError says which views there are where one was not found.
func (p *program) viewError(ctx context.Context, s store, view string, err error) error {
	if err == nil || !p.notFound(err) {
		return err
	}
	var names []string
	if views, verr := s.Views(ctx); verr == nil {
		for _, v := range views {
			names = append(names, v.Name)
		}
	}
	if contains(names, view) { // it is the document that is missing
		return &exitError{exitFailed, fmt.Errorf("view %s: %w", view, err)}
	}
	hint := "; there are none"
	if len(names) > 0 {
		hint = "; the views are: " + printable(strings.Join(names, ", "))
	}
	if near := config.Suggest(view, names); near != "" {
		hint = fmt.Sprintf("; did you mean %q? The views are: %s", near, printable(strings.Join(names, ", ")))
	}
	return &exitError{exitFailed, fmt.Errorf("there is no view %q%s", view, hint)}
}

func (p *program) viewList(ctx context.Context, s store) error {
	views, err := s.Views(ctx)
	if err != nil {
		return err
	}
	if p.json {
		for _, v := range views {
			if err := p.printJSON(v); err != nil {
				return err
			}
		}
		return nil
	}
	if len(views) == 0 {
		p.say("there are no views")
		return nil
	}
	rows := [][]string{{"VIEW", "STATE", "DOCUMENTS", "COMPLETE CSN"}}
	for _, v := range views {
		rows = append(rows, []string{v.Name, v.State, countText(v.Documents), fmt.Sprint(v.CompleteCSN)})
	}
	return table(p.stdout, rows)
}
