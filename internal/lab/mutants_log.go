package main

const (
	seglogDir   = "eventlog/seglog"
	crashlabDir = "eventlog/seglog/crashlab"
	joinDir     = "derive/join"
)

// logMutants takes out each protection of the log.
var logMutants = []mutant{
	// What is durable before it is acknowledged or shown.
	{
		"V17-entry-is-not-synced", "eventlog/seglog/write.go",
		"if err := l.w.f.Sync(); err != nil {", "if err := error(nil); err != nil {",
		seglogDir, "TestV17DirectorySyncedBeforeAck",
	},
	{
		"V17-new-file-is-not-synced", "eventlog/seglog/write.go",
		"if err = f.Sync(); err == nil {", "if err == nil {",
		seglogDir, "TestV18EntryWrittenOnlyAfterSync",
	},
	{
		"V17-directory-of-new-file-is-not-synced", "eventlog/seglog/write.go",
		"\t\terr = l.fs().SyncDir(l.path(\"journal\"))\n", "",
		seglogDir, "TestV17DirectorySyncedBeforeAck",
	},
	{
		"V17-directory-of-the-log-is-not-synced", "eventlog/seglog/open.go",
		"[]string{path.Dir(path.Clean(dir)), dir}", "[]string{dir, path.Clean(dir)}",
		seglogDir, "TestV17DirectorySyncedBeforeAck",
	},
	{
		"V18-two-entries-one-sync", "eventlog/seglog/write.go",
		"if err := l.w.f.Sync(); err != nil {", "if l.counts.syncs++; l.counts.syncs%2 == 0 {\n\t\treturn nil\n\t}\n\tif err := l.w.f.Sync(); err != nil {",
		seglogDir, "TestV18EntryWrittenOnlyAfterSync",
	},
	{
		"V18-good-entry-behind-is-not-looked-for", "eventlog/seglog/recover.go",
		"if found {\n\t\t\t\tbad.Reason", "if found && false {\n\t\t\t\tbad.Reason",
		seglogDir, "TestV18BadEntryWithGoodBehindIsDamage",
	},
	{
		"frontier-before-the-sync", "eventlog/seglog/append.go",
		"if err := l.writeEntry(g.entry); err != nil {\n\t\tg.mem.release()\n\t\treturn err\n\t}\n\tl.publish(g)\n\treturn nil",
		"l.publish(g)\n\treturn l.writeEntry(g.entry)",
		seglogDir, "TestFailedSyncIsTheEnd|TestFullDisk",
	},
	{
		"last-entry-is-not-written-again", "eventlog/seglog/open.go",
		"if _, err := f.WriteAt(b, rec.last); err != nil {", "if err := error(nil); err != nil {",
		seglogDir, "TestShownAtOpenIsDurable",
	},
	{
		"what-is-found-is-not-synced", "eventlog/seglog/open.go",
		"if err := f.Sync(); err != nil {\n\t\treturn fmt.Errorf(\"sync %s: %w (%w)\", rec.file.path", "if err := error(nil); err != nil {\n\t\treturn fmt.Errorf(\"sync %s: %w (%w)\", rec.file.path",
		seglogDir, "TestShownAtOpenIsDurable",
	},

	// Recovery.
	{
		"V19-torn-checkpoint-is-damage", "eventlog/seglog/recover.go",
		"if errors.Is(err, errNoCheckpoint) && i == len(numbers)-1 {", "if false {",
		seglogDir, "TestV19NewestFileWithoutCheckpointIsDropped",
	},
	{
		"V19-used-file-is-dropped", "eventlog/seglog/recover.go",
		"} else if found {\n\t\treturn s.corrupt(reason", "} else if found && false {\n\t\treturn s.corrupt(reason",
		seglogDir, "TestV19NewestFileWithoutCheckpointIsDropped",
	},
	{
		"V19-sealed-rows-are-written-again", "eventlog/seglog/seal.go",
		"if err != nil || r.Offset < w.from {", "if err != nil {",
		seglogDir, "TestV19SealedRowsAreNotWrittenAgain",
	},
	{
		"V20-nothing-is-skipped", "eventlog/seglog/open.go",
		"\t\tl.st.skip()\n", "",
		seglogDir, "TestV20CutSkipsOffsetsAndCSN",
	},
	{
		"V20-CSN-is-not-skipped", "eventlog/seglog/state.go",
		"\ts.nextCSN += eventlog.ForeignSkip\n", "",
		seglogDir, "TestV20CutSkipsOffsetsAndCSN",
	},
	{
		"V20-offsets-are-not-skipped", "eventlog/seglog/state.go",
		"\t\t\tt.next[p] += eventlog.ForeignSkip\n", "\t\t\tt.next[p] += 0\n",
		seglogDir, "TestV20CutSkipsOffsetsAndCSN",
	},
	{
		"V20-clock-beyond-2080", "eventlog/seglog/open.go",
		"if now.Year() > 2080 {", "if false {",
		seglogDir, "TestV20ClockIsRefused",
	},
	{
		"V20-clock-a-year-on", "eventlog/seglog/open.go",
		"now.Sub(last) > 366*24*time.Hour && !l.opts.TrustClock", "false",
		seglogDir, "TestV20ClockIsRefused",
	},
	{
		"V20-CSN-does-not-follow-the-clock", "eventlog/seglog/open.go",
		"\tl.st.nextCSN = max(l.st.nextCSN, eventlog.ClockCSN(l.opts.Clock()))\n", "",
		seglogDir, "TestV20ClockIsRefused",
	},
	{
		"closed-file-ends-where-it-does-on-disk", "eventlog/seglog/recover.go",
		"l.files[i].size = ends[i+1]", "_ = ends[i+1]",
		crashlabDir, "TestSweep",
	},
	{
		"hole-in-the-journal", "eventlog/seglog/recover.go",
		"if numbers[i] != numbers[i-1]+1 {", "if false {",
		seglogDir, "TestMissingFileIsDamage",
	},
	{
		"segments-overlap", "eventlog/seglog/segments.go",
		"case segs[i].base < segs[i-1].next:", "case false:",
		seglogDir, "TestMisplacedSegmentsAreDamage",
	},
	{
		"segment-beyond-the-journal", "eventlog/seglog/segments.go",
		"last.next > t.next[k.partition]", "false",
		seglogDir, "TestMisplacedSegmentsAreDamage",
	},
	{
		"read-error-is-damage", "eventlog/seglog/recover.go",
		"if err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, eventlog.ErrCorrupt) {", "if err != nil && !errors.Is(err, eventlog.ErrCorrupt) && false {",
		seglogDir, "TestReadErrorIsNotDamage",
	},
	{
		"oldest-file-is-missing", "eventlog/seglog/segments.go",
		"\tif err := l.checkTails(); err != nil {\n\t\treturn err\n\t}\n\treturn l.checkBeginning()\n", "\treturn nil\n",
		crashlabDir, "TestFileFaults",
	},
	{
		"file-of-another-log", "eventlog/seglog/recover.go",
		"if err == nil && i > 0 && st.id != states[0].id {", "if err == nil && i > 0 && st.id != states[0].id && false {",
		seglogDir, "TestFileOfAnotherLog",
	},
	{
		"file-in-the-middle-without-a-checkpoint", "eventlog/seglog/recover.go",
		"\t\tif errors.Is(err, errNoCheckpoint) {\n\t\t\terr = &Corrupt", "\t\tif false {\n\t\t\terr = &Corrupt",
		crashlabDir, "TestFileCutAnywhere",
	},
	{
		"segment-of-another-range", "eventlog/seglog/segment.go",
		"first < s.base || last >= s.next {", "first < s.base && last >= s.next {",
		crashlabDir, "TestFileInPlaceOfAnother",
	},
	{
		"groups-out-of-order", "eventlog/seglog/journalcursor.go",
		"if g.first != c.at {", "if g.first < c.at {",
		seglogDir, "TestGroupsOutOfOrder",
	},

	{
		"groups-are-sealed-out-of-order", "eventlog/seglog/seal.go",
		"if err == nil && len(g.rows) > 0 && g.first != next {", "if err == nil && len(g.rows) > 0 && g.first != next && false {",
		seglogDir, "TestGroupsOutOfOrder",
	},
	{
		"groups-are-checked-out-of-order", "eventlog/seglog/check.go",
		"return st, st.applyGroup(g)", "_ = g\n\treturn st, nil",
		seglogDir, "TestGroupsOutOfOrder",
	},

	// Checksums.
	{
		"checksum-of-an-entry", "eventlog/seglog/entry.go",
		"got != h.crc {", "got != h.crc && false {",
		crashlabDir, "TestFlipSmall",
	},
	{
		"checksum-of-a-batch", "eventlog/recorddecode.go",
		"want != got {", "want != got && false {",
		crashlabDir, "TestFlipSmall",
	},
	{
		"checksum-of-a-footer", "eventlog/seglog/segment.go",
		"if crc32.Checksum(footer, castagnoli) != binary.LittleEndian.Uint32(trailer[4:]) {", "if false {",
		seglogDir, "TestFooterDamage",
	},
	{
		"header-of-a-segment", "eventlog/seglog/segment.go",
		"if string(head) != string(appendSegmentHeader(nil, s.key)) {", "if len(head) == 0 {",
		seglogDir, "TestFooterDamage",
	},
	{
		"seed-of-a-file", "eventlog/seglog/entry.go",
		"\tbinary.LittleEndian.PutUint64(b[:], number)\n", "",
		seglogDir, "TestEntryOfAnotherFileIsNone",
	},

	// Sealing.
	{
		"segment-is-not-synced", "eventlog/seglog/segwriter.go",
		"if err == nil && last {", "if false {",
		seglogDir, "TestSealingSurvivesACrashAnywhere",
	},
	{
		"directory-of-segments-is-not-synced", "eventlog/seglog/seal.go",
		"for _, dir := range slices.Sorted(maps.Keys(dirs)) {", "for _, dir := range []string{} {",
		seglogDir, "TestSealingSurvivesACrashAnywhere",
	},
	{
		"directory-of-an-earlier-round-is-not-synced", "eventlog/seglog/seal.go",
		"dirs[w.dir] = true\n\t\tif w.seg == nil {\n\t\t\tcontinue\n\t\t}", "if w.seg == nil {\n\t\t\tcontinue\n\t\t}\n\t\tdirs[w.dir] = true",
		seglogDir, "TestRenamedSegmentIsSyncedBeforeTheJournalGoes",
	},
	{
		"newest-sealed-file-goes-first", "eventlog/seglog/seal.go",
		"\tl.doomed = append(l.doomed, l.files[:n]...)\n", "\tl.doomed = append(l.doomed, l.files[:n]...)\n\tslices.Reverse(l.doomed)\n",
		seglogDir, "TestSealingSurvivesACrashAnywhere",
	},
	{
		"sealed-files-go-in-any-order", "eventlog/seglog/seal.go",
		"\t\tif err := l.syncDir(l.path(\"journal\")); err != nil {\n\t\t\treturn err\n\t\t}\n\t\tif err := l.removeStreams", "\t\tif err := l.removeStreams",
		seglogDir, "TestSealingSurvivesACrashAnywhere",
	},
	{
		"directory-of-a-topic-is-not-synced", "eventlog/seglog/segments.go",
		"if err := l.syncDir(l.path(\"topics\")); err != nil {", "if err := error(nil); err != nil {",
		seglogDir, "TestSealingSurvivesACrashAnywhere",
	},

	// Appends that fail.
	{
		"refused-entry-is-not-cut", "eventlog/seglog/write.go",
		"if err := l.cutDirty(); err != nil && !errors.Is(err, eventlog.ErrFull) {", "if err := error(nil); err != nil {",
		seglogDir, "TestRefusedStaysAway",
	},
	{
		"next-entry-behind-one-that-was-not-cut", "eventlog/seglog/write.go",
		"\tif l.w.dirty {\n\t\treturn l.cutDirty()\n\t}\n", "",
		seglogDir, "TestRefusedStaysAway",
	},
	{
		"unfinished-file-stays", "eventlog/seglog/write.go",
		"if l.w.stray != \"\" {", "if false {",
		seglogDir, "TestUnfinishedFileIsRemoved",
	},
	{
		"log-goes-on-after-a-failed-sync", "eventlog/seglog/write.go",
		"\tl.fatal = fmt.Errorf(\"sync %s: %w (%w)\", path, ErrSync, err)\n\treturn l.fatal", "\treturn fmt.Errorf(\"sync %s: %w (%w)\", path, ErrSync, err)",
		seglogDir, "TestFailedSyncIsTheEnd",
	},
	{
		"partition-count-changes", "eventlog/check.go",
		"if want.Partitions != have.Partitions {", "if false {",
		seglogDir, "TestPartitionCountIsFrozen",
	},
	{
		"V22-mark-is-said-before-it-is-synced", "eventlog/seglog/write.go",
		"if err := l.w.f.Sync(); err != nil {", "if err := error(nil); err != nil {",
		seglogDir, "TestV22MarkIsSyncedBeforeItIsSaid",
	},
}
