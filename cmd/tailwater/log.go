package main

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"
)

// namesHelp explains the names of topics.
const namesHelp = `Topics are SOURCE.SCHEMA.TABLE and view.NAME; in each part a byte that is no letter,
digit or _ is written -hh, in hexadecimal: the table "order items" has the topic
shop.public.order-20items. Commands also take such a name as it is in the database.`

func (p *program) logCommand() *cobra.Command {
	topics := &cobra.Command{
		Use: "topics", Short: "List the topics", Args: noArgs,
		Long: `List the topics. RECORDS are those kept; JOURNAL RECORDS says how many of them are
in the journal alone, which holds the newest records of all topics; SEALED SIZE is
that of the segments, which hold the others. OFFSETS are the first kept and the next
one of each partition; behind a damaged end of the journal they go on 2^32 higher.
` + namesHelp,
		RunE: func(cmd *cobra.Command, _ []string) error { return p.with(cmd, p.logTopics) },
	}
	p.addrFlag(topics)
	return p.group("log", "Read the change log",
		topics, p.logCatCommand(), p.logTailCommand(), p.logDumpCommand(), p.logStatsCommand(), p.logCheckCommand(), p.logCompactCommand())
}

// topicError makes a topic that is not there a failure.
func (p *program) topicError(err error) error {
	if err != nil && p.notFound(err) {
		return &exitError{exitFailed, err}
	}
	return err
}

func (p *program) logTopics(ctx context.Context, s store) error {
	topics, err := s.Topics(ctx)
	if err != nil {
		return err
	}
	if p.json {
		for _, t := range topics {
			if err := p.printJSON(t); err != nil {
				return err
			}
		}
		return nil
	}
	if len(topics) == 0 {
		p.say("there are no topics")
		return nil
	}
	rows := [][]string{{"TOPIC", "PARTITIONS", "RECORDS", "JOURNAL RECORDS", "SEALED SIZE", "CLEANUP", "OFFSETS"}}
	for _, t := range topics {
		rows = append(rows, []string{
			printable(t.Name), fmt.Sprint(t.Partitions), countText(t.Records), countText(t.JournalRecords), bytesText(t.Bytes),
			t.Cleanup, offsetsText(t.Start, t.End),
		})
	}
	return table(p.stdout, rows)
}

// offsetsText shows the offsets of each partition: 0-17 3-9.
func offsetsText(start, end []int64) string {
	text := ""
	for i := range min(len(start), len(end)) {
		if i > 0 {
			text += " "
		}
		if i == 8 {
			return text + "…"
		}
		text += fmt.Sprintf("%d-%d", start[i], end[i])
	}
	return text
}
