package server

import (
	"net/http"
	"strings"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// collector makes the metrics from one Status at each scrape: nothing is counted on the path of a row.
type collector struct{ d Daemon }

func desc(name, help string, labels ...string) *prometheus.Desc {
	return prometheus.NewDesc("tailwater_"+name, help, labels, nil)
}

var (
	sourceLagSeconds    = desc("source_lag_seconds", "Age of the newest commit known while the log may lack later ones.", "source")
	sourceLagBytes      = desc("source_lag_bytes", "Bytes of the server's log not yet received.", "source")
	sourceRetainedBytes = desc("source_retained_bytes", "Bytes of log that the server keeps for this source.", "source")
	sourceRows          = desc("source_rows_total", "Rows received since the start.", "source", "op")
	snapshotRows        = desc("snapshot_rows_total", "Rows read by the snapshot of the table.", "source", "table")
	logAppendedBytes    = desc("log_appended_bytes_total", "Bytes appended to the log since the start.")
	logFrontier         = desc("log_frontier_csn", "Largest CSN that is durable with everything before it.")
	logDiskBytes        = desc("log_disk_bytes", "Bytes of the log on disk.", "part")
	logQuotaBytes       = desc("log_quota_bytes", "Bytes that the log may have on disk.")
	logDirtyBytes       = desc("log_dirty_bytes", "Bytes of segments that compaction has not looked at.")
	logDirtySeconds     = desc("log_dirty_seconds", "Age of the oldest segment that compaction has not looked at.")
	logCompactions      = desc("log_compactions_total", "Passes of compaction over a partition since the start.")
	logRemoved          = desc("log_removed_records_total", "Records removed by compaction since the start.")
	viewLagSeconds      = desc("view_lag_seconds", "Age of the oldest commit that the view has not reached.", "view")
	viewDocuments       = desc("view_documents", "Documents of the view.", "view")
	sinkWrites          = desc("sink_writes_total", "Document versions answered by the sink since the start, over all views.", "sink", "result")
	sinkLagSeconds      = desc("sink_lag_seconds", "Age of the oldest document version that the sink has not taken.", "sink", "view")
	deadLetters         = desc("dlq_records", "Rejected documents that no good version has replaced.", "sink")
	errorsTotal         = desc("errors_total", "Faults since the start: interruptions of a source, retries and rejections of a sink, stops of a view.", "part", "kind")
)

func (c collector) Describe(ch chan<- *prometheus.Desc) { prometheus.DescribeByCollect(c, ch) }

func (c collector) Collect(ch chan<- prometheus.Metric) {
	s := c.d.Status()
	send := func(d *prometheus.Desc, t prometheus.ValueType, v float64, labels ...string) {
		ch <- prometheus.MustNewConstMetric(d, t, v, labels...)
	}
	faults := map[string]float64{}
	gauge, counter := prometheus.GaugeValue, prometheus.CounterValue
	send(logAppendedBytes, counter, float64(s.Log.AppendedBytes))
	send(logFrontier, gauge, float64(s.Log.FrontierCSN))
	send(logDiskBytes, gauge, float64(s.Log.JournalBytes), "journal")
	send(logDiskBytes, gauge, float64(s.Log.SegmentBytes), "segments")
	send(logQuotaBytes, gauge, float64(s.Log.QuotaBytes))
	send(logDirtyBytes, gauge, float64(s.Log.DirtyBytes))
	send(logDirtySeconds, gauge, s.Log.DirtySeconds)
	send(logCompactions, counter, float64(s.Log.Compactions))
	send(logRemoved, counter, float64(s.Log.Removed))
	faults["log damaged"] += float64(s.Log.Damaged)
	for _, x := range s.Sources {
		if x.LagSeconds >= 0 { // -1 is unknown
			send(sourceLagSeconds, gauge, x.LagSeconds, x.Name)
		}
		if x.LagBytes >= 0 {
			send(sourceLagBytes, gauge, float64(x.LagBytes), x.Name)
		}
		if x.RetainedBytes >= 0 {
			send(sourceRetainedBytes, gauge, float64(x.RetainedBytes), x.Name)
		}
		for op, n := range x.Rows {
			send(sourceRows, counter, float64(n), x.Name, op)
		}
		for _, t := range x.Snapshots {
			send(snapshotRows, counter, float64(t.Rows), x.Name, t.Topic)
		}
		faults["source interrupted"] += float64(x.Interruptions)
	}
	for _, x := range s.Views {
		if x.LagSeconds >= 0 {
			send(viewLagSeconds, gauge, x.LagSeconds, x.Name)
		}
		send(viewDocuments, gauge, float64(x.Documents), x.Name)
		if x.State == "stopped" {
			faults["view stopped"]++
		}
	}
	letters := map[string]int64{}
	writes := map[[2]string]int64{} // by sink and result
	for _, x := range s.Sinks {
		writes[[2]string{x.Sink, "written"}] += x.Written
		writes[[2]string{x.Sink, "stale"}] += x.Stale
		writes[[2]string{x.Sink, "rejected"}] += x.Rejected
		writes[[2]string{x.Sink, "retried"}] += x.Retries
		if x.LagSeconds >= 0 {
			send(sinkLagSeconds, gauge, x.LagSeconds, x.Sink, x.View)
		}
		faults["sink retried"] += float64(x.Retries)
		faults["sink rejected"] += float64(x.Rejected)
		letters[x.Sink] += x.DeadLetters
	}
	for labels, n := range writes {
		send(sinkWrites, counter, float64(n), labels[0], labels[1])
	}
	for name, n := range faults {
		part, kind, _ := strings.Cut(name, " ")
		send(errorsTotal, counter, n, part, kind)
	}
	for sink, n := range letters {
		send(deadLetters, gauge, float64(n), sink)
	}
}

func metricsHandler(d Daemon) http.Handler {
	reg := prometheus.NewRegistry()
	reg.MustRegister(collector{d}, collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return promhttp.HandlerFor(reg, promhttp.HandlerOpts{})
}
