package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/tailwater/tailwater/config"
	"github.com/tailwater/tailwater/server"
)

// open gives the running daemon's store or, when none runs and --addr was not
// given, the data directory's.
func (p *program) open(ctx context.Context) (store, error) {
	c, cfg, err := p.reach(ctx)
	if err != nil {
		return nil, err
	}
	if c != nil {
		return c, nil
	}
	if p.deps.offline == nil {
		return nil, errNotBuilt("reading a stopped data directory")
	}
	s, err := p.deps.offline(cfg)
	if err != nil {
		return nil, fmt.Errorf("data directory %s: %w", cfg.DataDir, err)
	}
	return s, nil
}

// reach gives the running daemon or, when none runs and --addr was not given,
// what the configuration says of the data directory alone: no secrets of others.
func (p *program) reach(ctx context.Context) (*client, *config.Config, error) {
	located, err := p.locate()
	if err != nil {
		return nil, nil, err
	}
	c, err := p.client(located)
	if err != nil {
		return nil, nil, err
	}
	_, _, err = c.read(ctx, "GET", "/healthz", nil)
	if err == nil {
		return c, located, nil
	}
	if p.addr != "" || !errors.Is(err, errNoDaemon) {
		return nil, nil, err
	}
	cfg, err := config.LoadStopped(p.config, p.env)
	if err != nil {
		return nil, nil, configError(err)
	}
	return nil, cfg, nil
}

func errNotBuilt(what string) error {
	return fmt.Errorf("%s is not part of this build", what)
}

// notFound says what a store does not have.
func (p *program) notFound(err error) bool {
	var api *apiError
	return errors.Is(err, server.ErrNotFound) || errors.As(err, &api) && api.Status == 404
}
