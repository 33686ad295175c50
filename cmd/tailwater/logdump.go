package main

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/tailwater/tailwater/server"
)

func (p *program) logDumpCommand() *cobra.Command {
	var flags rangeFlags
	var records bool
	c := &cobra.Command{
		Use:   "dump TOPIC",
		Short: "Print the raw record batches of a topic",
		Long: `Print where the record batches of a topic lie and what their headers say: those of
the segments first, then those that only the journal holds. Of a range, all batches
with any record in it are shown. The topic _tx has batches in segments only.`,
		Args: takes(1, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := flags.check(cmd); err != nil {
				return err
			}
			if err := checkGlob(args[0]); err != nil {
				return err
			}
			q := server.BatchQuery{
				Topic: args[0], FromOffset: flags.fromOffset, ToOffset: flags.toOffset, FromCSN: flags.fromCSN, FromTime: flags.time,
				Partition: flags.partition, Limit: flags.limit, Records: records,
			}
			return p.with(cmd, func(ctx context.Context, s store) error { return p.logDump(ctx, s, q) })
		},
	}
	flags.add(c, "batches")
	c.Flags().BoolVar(&records, "records", false, "also print each record, its key and value in hexadecimal")
	p.addrFlag(c)
	return c
}

// logDump prints batches; exit code 1 if one is damaged.
func (p *program) logDump(ctx context.Context, s store, q server.BatchQuery) error {
	out := newLineWriter(p.stdout)
	damaged := false
	err := s.Batches(ctx, q, func(line []byte) error {
		var b server.BatchLine
		if err := json.Unmarshal(line, &b); err != nil {
			return fmt.Errorf("read a batch: %w", err)
		}
		damaged = damaged || !b.CRCOK
		if p.json {
			return out.write(append(line[:len(line):len(line)], '\n'))
		}
		return out.write([]byte(batchText(&b)))
	})
	if ferr := out.flush(); err == nil {
		err = ferr
	}
	if err != nil {
		return p.topicError(err)
	}
	if damaged {
		return found()
	}
	return nil
}

// batchText is a batch for people.
func batchText(b *server.BatchLine) string {
	head := fmt.Sprintf("%s/%d  %s byte %d  ", printable(b.Topic), b.Partition, printable(b.File), b.Byte)
	if !b.CRCOK {
		return head + "DAMAGED: " + printable(b.Damage) + "\n"
	}
	text := fmt.Sprintf("%soffsets %d-%d  %s  csn %d-%d  %s to %s  %s  %d bytes  crc ok\n", head,
		b.BaseOffset, b.LastOffset, countOf(b.Count, "record"), b.MinCSN, b.MaxCSN, b.MinTime, b.MaxTime, b.Compression, b.Size)
	for _, r := range b.Records {
		text += fmt.Sprintf("  %d  %d.%d  %s  %s  flags %d  schema %d  key %s  value %s\n", r.Offset, r.CSN, r.Seq, r.Time, r.Op, r.Flags, r.Schema, hexText(r.Key), hexText(r.Value))
	}
	return text
}

func hexText(text *string) string {
	switch {
	case text == nil:
		return "null"
	case *text == "":
		return "empty"
	}
	return *text
}
