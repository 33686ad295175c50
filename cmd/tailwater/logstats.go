package main

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"
)

func (p *program) logStatsCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "stats",
		Short: "Describe the log and its topics",
		Long: `Describe the log and its topics: sizes, records, times. The whole journal is read for
it. JOURNAL SIZE is that of the batches that are in no segment yet, SEALED SIZE that of
the segments.`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return p.with(cmd, p.logStats) },
	}
	p.addrFlag(c)
	return c
}

func (p *program) logStats(ctx context.Context, s store) error {
	d, err := s.LogStats(ctx)
	if err != nil {
		return err
	}
	if p.json {
		return p.printJSON(d)
	}
	rows := [][]string{
		{"frontier", fmt.Sprint(d.FrontierCSN)},
		{"records", countText(d.Records)},
		{"newest", newestText(d.Newest)},
		{"journal", fmt.Sprintf("%s in %s, from CSN %d on", bytesText(d.JournalBytes), countOf(d.JournalFiles, "file"), d.OldestCSN)},
		{"segments", fmt.Sprintf("%s in %s", bytesText(d.SegmentBytes), countOf(d.Segments, "file"))},
	}
	if d.Laggard != nil {
		rows = append(rows, []string{"kept for", laggardText(d.Laggard)})
	}
	if d.Live != nil {
		rows = append(rows, []string{"since the start", fmt.Sprintf("%s appended in %s, %s",
			bytesText(d.Live.AppendedBytes), countOf(int(d.Live.Appends), "group"), countOf(int(d.Live.Syncs), "sync"))})
	}
	if err := table(p.stdout, rows); err != nil {
		return err
	}
	rows = [][]string{{"TOPIC", "RECORDS", "JOURNAL SIZE", "SEALED SIZE", "SEGMENTS", "NEWEST", "CLEANUP", "OFFSETS"}}
	for _, t := range d.Topics {
		rows = append(rows, []string{
			printable(t.Name), countText(t.Records), bytesText(t.JournalBytes), bytesText(t.Bytes), fmt.Sprint(t.Segments),
			newestText(t.Newest), t.Cleanup, offsetsText(t.Start, t.End),
		})
	}
	if _, err := fmt.Fprintln(p.stdout); err != nil {
		return err
	}
	return table(p.stdout, rows)
}

func newestText(t *time.Time) string {
	if t == nil {
		return "-"
	}
	return t.UTC().Format("2006-01-02T15:04:05.999999Z07:00")
}

// countOf is 1 file, 2 files.
func countOf(n int, what string) string {
	if n != 1 {
		what += "s"
	}
	return countText(int64(n)) + " " + what
}
