// Package daemon builds everything from a config.Config and runs it: sources
// into the log, the log into views, views into sinks, and the HTTP side over
// all of them. It and cmd are the only packages that see every concrete type.
//
// A source that fails for a while is opened again with backoff; one that
// failed for good (history lost, another server, a missing privilege) stays
// stopped with its reason in the status while the rest goes on. Only a failed
// sync of the log, or of the views' state, ends the process.
package daemon
