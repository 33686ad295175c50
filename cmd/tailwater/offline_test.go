package main

import (
	"context"
	"errors"
	"testing"

	"github.com/tailwater/tailwater/config"
	"github.com/tailwater/tailwater/server"
)

type cfgType = config.Config

// offlineFake is a stopped data directory with what a fake daemon has.
type offlineFake struct {
	f      *fake
	closed bool
}

func (o *offlineFake) Topics(ctx context.Context) ([]server.TopicStatus, error) {
	return o.f.Topics(ctx)
}
func (o *offlineFake) Batches(ctx context.Context, q server.BatchQuery, fn func([]byte) error) error {
	return o.f.Batches(ctx, q, fn)
}
func (o *offlineFake) LogStats(ctx context.Context) (server.LogDetail, error) {
	return o.f.LogStats(ctx)
}
func (o *offlineFake) Views(context.Context) ([]server.ViewStatus, error) {
	return o.f.status.Views, nil
}
func (o *offlineFake) Get(_ context.Context, view, id string) ([]byte, uint64, error) {
	return o.f.Get(view, id)
}
func (o *offlineFake) Dump(ctx context.Context, view string, fn func(string, uint64, []byte) error) error {
	return o.f.Dump(ctx, view, fn)
}
func (o *offlineFake) Records(ctx context.Context, q server.RecordQuery, fn func([]byte) error) error {
	return o.f.Records(ctx, q, fn)
}
func (o *offlineFake) Close() error { o.closed = true; return nil }

// TestOffline reads a data directory that no daemon has open.
func TestOffline(t *testing.T) {
	c := newCLI(t)
	o := &offlineFake{f: &fake{status: sampleStatus()}}
	c.deps.offline = func(*config.Config) (store, error) { return o, nil }
	c.run("view", "list").want(t, exitDone, "orders", "")
	c.run("view", "get", "orders", "1").want(t, exitDone, "9223372036854775809", "")
	c.run("view", "get", "orders", "9").want(t, exitFailed, "", "no document")
	c.run("view", "dump", "orders", "--json").want(t, exitDone, `"version":43`, "")
	c.run("log", "topics").want(t, exitDone, "shop.public.orders", "")
	c.run("log", "cat", "x", "--json").want(t, exitDone, `"csn":3`, "")
	c.run("log", "tail", "-f", "x").want(t, exitDone, "3.0", "no daemon answers on this data directory; waiting")
	c.run("dlq", "list").want(t, exitDone, "too deep", "")
	if !o.closed {
		t.Error("the data directory was left open")
	}
	c.deps.offline = func(*config.Config) (store, error) { return nil, errors.New("it is damaged") }
	c.run("view", "list").want(t, exitFailed, "", "/data: it is damaged")
	c.run("view", "list", "--addr", "127.0.0.1:1").want(t, exitUnreachable, "", "does not answer")
}
