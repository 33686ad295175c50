package main

import (
	"fmt"
	"io"
	"strconv"

	"github.com/tailwater/tailwater/server"
)

// printStatus prints the status for people.
func (p *program) printStatus(s *server.Status) error {
	c, w := p.painter(), p.stdout
	word := "ready"
	if !s.Ready {
		word = c.red("not ready")
	}
	fmt.Fprintf(w, "tailwater %s, up since %s, %s\n", printable(s.Version), s.Started.UTC().Format("2006-01-02 15:04:05Z"), word)
	for _, r := range s.Reasons {
		fmt.Fprintf(w, "  %s\n", c.red(printable(r)))
	}
	for _, n := range s.Notices {
		fmt.Fprintf(w, "  %s\n", c.red(printable(n)))
	}
	for _, part := range []func(io.Writer, *server.Status) error{sourceTable, snapshotTable, logLine, viewTable, sinkTable} {
		if err := part(w, s); err != nil {
			return err
		}
	}
	p.reasons(s)
	return nil
}

func sourceTable(w io.Writer, s *server.Status) error {
	rows := [][]string{{"SOURCE", "KIND", "STATE", "LAG", "BEHIND", "RETAINED", "DURABLE"}}
	for _, x := range s.Sources {
		rows = append(rows, []string{x.Name, x.Kind, x.State, secondsText(x.LagSeconds), bytesText(x.LagBytes), bytesText(x.RetainedBytes), printable(x.Durable)})
	}
	return section(w, rows)
}

// snapshotTable lists the tables whose snapshot is under way.
func snapshotTable(w io.Writer, s *server.Status) error {
	rows := [][]string{{"SNAPSHOT", "STATE", "ROWS", "OF ABOUT", "DONE", "LEFT"}}
	for _, src := range s.Sources {
		for _, x := range src.Snapshots {
			if x.State == "done" {
				continue
			}
			of, done, left := "?", "?", "?"
			if x.Total > 0 {
				of, done = countText(x.Total), strconv.FormatFloat(x.Percent, 'f', 0, 64)+" %"
			}
			if x.ETASeconds > 0 {
				left = secondsText(x.ETASeconds)
			}
			rows = append(rows, []string{printable(x.Topic), x.State, countText(x.Rows), of, done, left})
		}
	}
	return section(w, rows)
}

func logLine(w io.Writer, s *server.Status) error {
	quota := "80 % of the file system"
	if s.Log.QuotaBytes > 0 {
		quota = bytesText(s.Log.QuotaBytes)
	}
	_, err := fmt.Fprintf(w, "\nLOG  %s in %d topics (journal %s, segments %s), quota %s, whole data directory %s, frontier %d\n",
		bytesText(s.Log.JournalBytes+s.Log.SegmentBytes), s.Log.Topics, bytesText(s.Log.JournalBytes), bytesText(s.Log.SegmentBytes),
		quota, bytesText(s.Log.DiskBytes), s.Log.FrontierCSN)
	if err == nil && s.Log.Laggard != nil {
		_, err = fmt.Fprintf(w, "     kept for %s\n", laggardText(s.Log.Laggard))
	}
	return err
}

// laggardText says who keeps a log from getting smaller.
func laggardText(l *server.Laggard) string {
	return fmt.Sprintf("%s, at CSN %d: about %s of deletes in %s, from %s on", printable(l.Consumer), l.PassedCSN, bytesText(l.Bytes), printable(l.Topic), newestText(&l.Since))
}

func viewTable(w io.Writer, s *server.Status) error {
	rows := [][]string{{"VIEW", "STATE", "DOCUMENTS", "LAG", "PENDING", "COMPLETE CSN"}}
	for _, x := range s.Views {
		rows = append(rows, []string{x.Name, x.State, countText(x.Documents), secondsText(x.LagSeconds), countText(x.Pending), strconv.FormatUint(x.CompleteCSN, 10)})
	}
	return section(w, rows)
}

func sinkTable(w io.Writer, s *server.Status) error {
	rows := [][]string{{"SINK", "VIEW", "STATE", "LAG", "BEHIND", "WRITTEN", "REJECTED", "DEAD LETTERS"}}
	for _, x := range s.Sinks {
		rows = append(rows, []string{x.Sink, x.View, x.State, secondsText(x.LagSeconds), countText(x.LagRecords), countText(x.Written), countText(x.Rejected), countText(x.DeadLetters)})
	}
	return section(w, rows)
}

// section prints a table behind an empty line, and nothing if it has no rows.
func section(w io.Writer, rows [][]string) error {
	if len(rows) < 2 {
		return nil
	}
	fmt.Fprintln(w)
	return table(w, rows)
}

// reasons prints why parts stand still, which no column holds.
func (p *program) reasons(s *server.Status) {
	c, first := p.painter(), true
	line := func(part, reason string) {
		if reason == "" {
			return
		}
		if first {
			fmt.Fprintln(p.stdout)
		}
		first = false
		fmt.Fprintf(p.stdout, "%s: %s\n", part, c.red(printable(reason)))
	}
	for _, x := range s.Sources {
		line("source "+x.Name, x.Reason)
	}
	for _, x := range s.Views {
		line("view "+x.Name, x.Reason)
	}
	for _, x := range s.Sinks {
		line("sink "+x.Sink+" of view "+x.View, x.Reason)
	}
}
