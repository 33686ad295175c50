package postgres

import (
	"context"
	"sync"
)

// sharedSession is a session that is made anew when it broke. Use it inside do.
type sharedSession struct {
	o *Options

	mu     sync.Mutex // guards s; held while a query runs, since a session serves one
	s      *session
	closed bool
}

// do runs f with the session, alone.
func (p *sharedSession) do(ctx context.Context, f func(s *session) error) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return errClosed
	}
	if p.s != nil && p.s.conn.IsClosed() {
		p.s = nil
	}
	if p.s == nil {
		s, err := connect(ctx, p.o, false)
		if err != nil {
			return err
		}
		p.s = s
	}
	return f(p.s)
}

func (p *sharedSession) close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.closed = true
	if p.s != nil {
		p.s.close()
		p.s = nil
	}
}
