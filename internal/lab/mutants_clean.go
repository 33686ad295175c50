package main

// cleanMutants takes out each protection of what keeps the log small, of streams,
// and of what views do about it.
var cleanMutants = []mutant{
	// Compaction.
	{
		"V21-horizon-is-raised-after-the-removal", "eventlog/seglog/compact.go",
		"\tif err := c.raiseHorizon(); err != nil {\n\t\treturn false, err\n\t}\n\tif err := c.rewrite(); err != nil {\n\t\treturn false, err\n\t}\n",
		"\tif err := c.rewrite(); err != nil {\n\t\treturn false, err\n\t}\n\tif err := c.raiseHorizon(); err != nil {\n\t\treturn false, err\n\t}\n",
		seglogDir, "TestCompactionModel",
	},
	{
		"V21-horizon-is-not-raised", "eventlog/seglog/compact.go",
		"return c.l.saveOwn(horizonMarkOf(c.key.topic, c.lastCSN))", "return nil",
		seglogDir, "TestCompactionModel",
	},
	{
		"tombstone-goes-above-the-clean-mark", "eventlog/seglog/compact.go",
		"return r.Offset < c.clean.offset && c.end >= c.clean.covers &&\n\t\tc.now", "return c.now",
		seglogDir, "TestCompactionModel|TestB089StaleVersionStaysAway",
	},
	{
		"tombstone-goes-in-a-pass-that-does-not-look-far-enough", "eventlog/seglog/compact.go",
		"c.end >= c.clean.covers &&\n", "true &&\n",
		seglogDir, "TestTombstoneOverHeldValues",
	},
	{
		"shorter-pass-forgets-what-is-held", "eventlog/seglog/compact.go",
		"case c.end < c.clean.covers:", "case false:",
		seglogDir, "TestTombstoneOverHeldValues",
	},
	{
		"let-go-cursor-still-holds", "eventlog/seglog/cursor.go",
		"if c.LetGo || !slices.Contains(c.Topics, topic) {", "if !slices.Contains(c.Topics, topic) {",
		seglogDir, "TestLaggardIsLetGo",
	},
	{
		"let-go-cursor-moves-on", "eventlog/seglog/laggard.go",
		"if c == nil || !l.Cursors()[consumer].LetGo {", "if true {",
		seglogDir, "TestLaggardIsLetGo",
	},
	{
		"consumer-is-let-go-in-vain", "eventlog/seglog/laggard.go",
		"if need > 0 || len(list) == 0 {", "if len(list) == 0 {",
		seglogDir, "TestLaggardsStay",
	},
	{
		"views-are-let-go", "eventlog/seglog/laggard.go",
		"h.anew = h.anew && c.Rebuilds", "h.anew = h.anew || c.Rebuilds",
		seglogDir, "TestLaggardIsNamed",
	},
	{
		"let-go-sink-goes-on", "derive/sink/decide.go",
		"if s.wasLetGo() {", "if false {",
		"derive/sink", "TestLetGoIsBuiltAnew|TestModel",
	},
	{
		"tombstone-goes-before-its-retention", "eventlog/seglog/compact.go",
		"c.now-c.timeOf(r) >= c.topic.Spec.TombstoneRetention.Microseconds()", "c.now > 0",
		seglogDir, "TestAT07Compaction",
	},
	{
		"tombstone-goes-before-a-cursor-has-passed", "eventlog/seglog/cursor.go",
		"lim.tombstones = min(lim.tombstones, c.Passed)", "_ = c.Passed",
		seglogDir, "TestCompactionModel|TestAT07Compaction",
	},
	{
		"values-go-before-a-cursor-has-passed", "eventlog/seglog/cursor.go",
		"\t\t\tlim.values = min(lim.values, c.Passed)\n", "",
		seglogDir, "TestAT07History",
	},
	{
		"pin-holds-no-tombstones", "eventlog/seglog/cursor.go",
		"lim.values, lim.tombstones = min(lim.values, p.upTo), 0", "lim.values = min(lim.values, p.upTo)",
		seglogDir, "TestAT07Compaction",
	},
	{
		"pin-holds-no-values", "eventlog/seglog/cursor.go",
		"lim.values, lim.tombstones = min(lim.values, p.upTo), 0", "lim.tombstones = 0",
		seglogDir, "TestPinHoldsValues",
	},
	{
		"moved-rows-are-not-held", "eventlog/seglog/compact.go",
		"if c.moved {", "if c.moved && false {",
		seglogDir, "TestCompactionModel",
	},
	{
		"moved-halves-are-merged", "eventlog/seglog/compactmerge.go",
		"case older.lacksMoved():", "case false:",
		seglogDir, "TestCompactionModel",
	},
	{
		"unmerged-partials-lose-their-chain", "eventlog/seglog/compactwrite.go",
		"c.held[off] || partial && !merged {", "c.held[off] || partial && !merged && false {",
		seglogDir, "TestCompactionModel",
	},
	{
		"oldest-segments-are-written-first", "eventlog/seglog/compactwrite.go",
		"range slices.Backward(runs)", "range slices.All(runs)",
		seglogDir, "TestCompactionModel",
	},
	{
		"compaction-passes-where-the-journal-begins", "eventlog/seglog/compactscan.go",
		"min(c.segs[len(c.segs)-1].next, c.limit)", "c.segs[len(c.segs)-1].next",
		seglogDir, "TestCompactionLeavesWhatTheJournalMayHold|TestCompactionUnderReaders",
	},
	{
		"compaction-passes-a-file-that-may-come-back", "eventlog/seglog/compact.go",
		"c.limit = l.oldestFile().start", "c.limit = l.files[0].start",
		seglogDir, "TestCompactionLeavesWhatTheJournalMayHold",
	},
	{
		"clean-mark-before-the-runs", "eventlog/seglog/compact.go",
		"\tif err := c.rewrite(); err != nil {\n\t\treturn false, err\n\t}\n\tnext :=",
		"\tif err := c.l.saveOwn(cleanState{offset: c.end}.mark(c.key)); err != nil {\n\t\treturn false, err\n\t}\n\tif err := c.rewrite(); err != nil {\n\t\treturn false, err\n\t}\n\tnext :=",
		seglogDir, "TestCompactionModel",
	},
	{
		"directory-is-not-synced-after-compaction", "eventlog/seglog/compactwrite.go",
		"if err := c.l.syncDir(w.dir); err != nil {", "if err := error(nil); err != nil {",
		seglogDir, "TestCompactionModel|TestB089StaleVersionStaysAway",
	},
	{
		"covered-segments-stay", "eventlog/seglog/segments.go",
		"n == 0 || s.next > kept[n-1].next || s.base < kept[n-1].base {", "n >= 0 {",
		seglogDir, "TestCompactionModel",
	},
	{
		"older-generation-counts", "eventlog/seglog/segments.go",
		"cmp.Compare(b.gen, a.gen)", "cmp.Compare(a.gen, b.gen)",
		seglogDir, "TestCompactionModel",
	},

	// Retention.
	{
		"rows-go-before-the-start-is-saved", "eventlog/seglog/retain.go",
		"\t\tif err := l.moveTxStart(gone); err != nil {\n\t\t\treturn err\n\t\t}\n",
		"\t\tdefer l.moveTxStart(gone)\n",
		seglogDir, "TestRowsExpireSurvivesACrashAnywhere",
	},
	{
		"rows-that-went-are-shown", "eventlog/seglog/rowless.go",
		"\tr.ordinal = max(r.ordinal, uint64(start.ends[partKey{txTopic, 0}]))\n", "",
		seglogDir, "TestRowsExpireSurvivesACrashAnywhere",
	},
	{
		"readers-pin-no-rows", "eventlog/seglog/retain.go",
		"least = min(least, r.pinned.Load())", "_ = r",
		seglogDir, "TestRowsOfTxExpire",
	},
	{
		"reader-that-began-meanwhile-pins-no-rows", "eventlog/seglog/retain.go",
		"\t\tgone = l.unread(gone) // a reader", "\t\t// a reader",
		seglogDir, "TestRowsExpireUnderReaders",
	},
	{
		"rows-of-the-journal-expire", "eventlog/seglog/retain.go",
		"least := l.oldestFile().ordinal", "least := uint64(1) << 62",
		seglogDir, "TestRowsOfTheJournalDoNotExpire",
	},
	{
		"newest-segment-expires-first", "eventlog/seglog/retain.go",
		"for _, s := range gone { // oldest first", "for _, s := range slices.Backward(gone) { // oldest first",
		seglogDir, "TestExpireSurvivesACrashAnywhere",
	},
	{
		"segments-expire-in-any-order", "eventlog/seglog/retain.go",
		"if err := l.syncDir(dir); err != nil {", "if _, err := dir, error(nil); err != nil {",
		seglogDir, "TestExpireSurvivesACrashAnywhere",
	},
	{
		"V23-topic-is-made-again", "eventlog/seglog/encode.go",
		"if have := st.byName[spec.Name]; have != nil {", "if have := st.byName[spec.Name]; have != nil && have.topic.Spec == spec {",
		seglogDir, "TestV23OffsetsContinue",
	},

	// Quota.
	{
		"quota-refuses-nothing", "eventlog/seglog/quota.go",
		"if !r.counts() {", "if r != nil {",
		seglogDir, "TestQuota",
	},
	{
		"quota-refuses-marks", "eventlog/seglog/quota.go",
		"if !r.counts() {", "if false {",
		seglogDir, "TestQuota",
	},
	{
		"quota-wakes-nobody", "eventlog/seglog/quota.go",
		"\tselect {\n\tcase loop <- struct{}{}:\n\tdefault:\n\t}\n", "\t_ = loop\n",
		seglogDir, "TestQuota",
	},

	// Streams.
	{
		"V17-streamed-file-is-not-synced", "eventlog/seglog/stream.go",
		"\tif err := s.sync(); err != nil {\n\t\treturn err\n\t}\n\tif err := s.l.do(", "\tif err := s.l.do(",
		seglogDir, "TestV17StreamedFileSyncedBeforeAck",
	},
	{
		"V17-name-of-a-streamed-file-is-not-synced", "eventlog/seglog/stream.go",
		"if !s.placed {", "if !s.placed && false {",
		seglogDir, "TestV17StreamedFileSyncedBeforeAck|TestStreamLosesPowerAnywhere",
	},
	{
		"doubtful-stream-is-deleted", "eventlog/seglog/stream.go",
		"if path == \"\" || s.doubtful {", "if path == \"\" {",
		seglogDir, "TestDoubtfulStreamIsNotDeleted",
	},
	{
		"stream-goes-on-after-a-failed-sync", "eventlog/seglog/stream.go",
		"\t\t\ts.lost = fmt.Errorf(\"%w: %w\", eventlog.ErrStreamLost, err)\n\t\t\treturn s.lost\n", "\t\t\treturn err\n",
		seglogDir, "TestStreamSyncWithoutSpace",
	},

	// Damage.
	{
		"V21-damage-goes-before-the-horizon", "eventlog/seglog/setaside.go",
		"\tif err := l.saveOwn(horizonMarkOf(t.ID, frontier)); err != nil { // before anything goes (V21)\n\t\treturn 0, err\n\t}\n\tfor _, d := range list {\n\t\tif err := l.rewriteWithout(ctx, t, d); err != nil {\n\t\t\treturn batches, fmt.Errorf(\"set damage of topic %q aside: %w\", t.Spec.Name, l.failed(\"write anew\", d.seg.path, err))\n\t\t}\n\t\tbatches += d.count\n\t}\n",
		"\tfor _, d := range list {\n\t\tif err := l.rewriteWithout(ctx, t, d); err != nil {\n\t\t\treturn batches, fmt.Errorf(\"set damage of topic %q aside: %w\", t.Spec.Name, l.failed(\"write anew\", d.seg.path, err))\n\t\t}\n\t\tbatches += d.count\n\t}\n\tif err := l.saveOwn(horizonMarkOf(t.ID, frontier)); err != nil {\n\t\treturn batches, err\n\t}\n",
		seglogDir, "TestSetAsideCrash",
	},
	{
		"needed-damage-is-set-aside", "eventlog/seglog/setaside.go",
		"if d.end > end {", "if d.end < 0 {",
		seglogDir, "TestSetAside",
	},
	{
		"no-sweep-record-for-lost-keys", "connectors/sweep.go",
		"\tif err := in.append(ctx, []*eventlog.Tx{p.tx}); err != nil {\n\t\treturn err\n\t}\n\tvar n int\n", "\tvar n int\n",
		"connectors", "TestSweepTellsOfLostKeys",
	},
	{
		"sweep-record-leaves-rows", "derive/step.go",
		"return sweep(t, s.batch, rec, func(del *eventlog.Record) error { return r.applyRecord(s, t, del) })", "return nil",
		joinDir, "TestModelAgainstBruteForce",
	},

	// Views.
	{
		"V21-view-outputs-below-the-horizon", "derive/emit.go",
		"s.b >= v.memory.Floor && !r.behind(v)", "s.b >= v.memory.Floor",
		joinDir, "TestV21NothingIsOutputBelowTheHorizon",
	},
	{
		"V22-unsynced-position-is-passed", "derive/step.go",
		"if !sync || r.applied == r.syncedAt {", "if r.applied == r.syncedAt {",
		joinDir, "TestV22OnlySyncedStateIsPassed",
	},
	{
		"V22-unsynced-position-holds-tables", "derive/horizon.go",
		"\tif r.syncedAt > 0 {\n\t\tpassed = r.syncedAt\n\t} else if ok {\n\t\tpassed = min(passed, have.Passed)\n\t}\n", "",
		joinDir, "TestV22OnlySyncedStateIsPassed",
	},
}
