package main

import (
	"context"
	"errors"
	"fmt"
	"net"

	"github.com/tailwater/tailwater/config"
)

// The exit codes.
const (
	exitDone        = 0
	exitFailed      = 1 // failed, or found what it looks for
	exitMisuse      = 2 // flags, config
	exitUnreachable = 3 // cannot reach something outside
	exitTimeout     = 4 // timed out waiting
	exitRefused     = 5 // would lose data or history
)

// exitError is an error with the exit code that it means. A nil err has been
// said already.
type exitError struct {
	code int
	err  error
}

func (e *exitError) Error() string {
	if e.err == nil {
		return ""
	}
	return e.err.Error()
}

func (e *exitError) Unwrap() error { return e.err }

func misuse(format string, args ...any) error {
	return &exitError{exitMisuse, fmt.Errorf(format, args...)}
}

func refused(format string, args ...any) error {
	return &exitError{exitRefused, fmt.Errorf(format, args...)}
}

func unreachable(err error) error { return &exitError{exitUnreachable, err} }

// found is the exit of a command that found what it looks for and has shown it.
func found() error { return &exitError{code: exitFailed} }

// exitCode is the code that an error means; other packages' errors go through
// deps.code.
func (p *program) exitCode(err error) int {
	var x *exitError
	switch {
	case err == nil:
		return exitDone
	case errors.As(err, &x):
		return x.code
	case errors.Is(err, config.ErrInvalid):
		return exitMisuse
	}
	if p.deps.code != nil {
		if code := p.deps.code(err); code != 0 {
			return code
		}
	}
	var op *net.OpError
	var dns *net.DNSError
	switch {
	case errors.As(err, &op) && op.Op == "dial", errors.As(err, &dns):
		return exitUnreachable
	case errors.Is(err, context.DeadlineExceeded):
		return exitTimeout
	}
	return exitFailed
}
