// Package logtest is the suite that every backend of eventlog.Log passes (Run),
// and Mem, an eventlog.Log in memory for the unit tests of other packages.
//
// Mem keeps the contract of package eventlog but for durability: it loses
// everything at Close, except that Reopen continues with what was appended.
package logtest
