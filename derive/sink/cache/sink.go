package cache

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/redis/rueidis"

	"github.com/tailwater/tailwater/change"
	"github.com/tailwater/tailwater/derive/sink"
)

// Options of a Redis sink.
type Options struct {
	Name     string // of the sink; names its epochs in State
	Addr     string // host:port
	Username string // "" = the default user
	Password string
	DB       int           // default 0
	TLS      *tls.Config   // nil = plain
	Timeout  time.Duration // of one command; default 10s
	State    sink.State    // keeps the epochs; a Log

	BatchCount int          // documents in one script; default 256
	BatchBytes int          // of one script; default 1 MiB
	Logger     *slog.Logger // default: discards
}

// ViewOptions are the sink.View.Options of this sink.
type ViewOptions struct {
	Key string        // template; "" = DefaultTemplate
	TTL time.Duration // 0 = none
}

// maxValue is the longest string that Redis takes (proto-max-bulk-len).
const maxValue = 512 << 20

// Sink is one server. It may be used from any goroutine.
type Sink struct {
	opts Options

	mu     sync.Mutex // guards client
	client rueidis.Client
}

// New returns the sink; it does no I/O.
func New(opts Options) *Sink {
	if opts.Timeout <= 0 {
		opts.Timeout = 10 * time.Second
	}
	if opts.BatchCount <= 0 {
		opts.BatchCount = 256
	}
	if opts.BatchBytes <= 0 {
		opts.BatchBytes = 1 << 20
	}
	if opts.Logger == nil {
		opts.Logger = slog.New(slog.DiscardHandler)
	}
	return &Sink{opts: opts}
}

// connect returns the client, which dials again by itself once it is made.
func (s *Sink) connect() (rueidis.Client, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.client != nil {
		return s.client, nil
	}
	c, err := rueidis.NewClient(rueidis.ClientOption{
		InitAddress: []string{s.opts.Addr}, Username: s.opts.Username, Password: s.opts.Password, SelectDB: s.opts.DB,
		TLSConfig: s.opts.TLS, Dialer: net.Dialer{Timeout: s.opts.Timeout}, ConnWriteTimeout: s.opts.Timeout,
		ClientName: "tailwater", ForceSingleClient: true, DisableCache: true, DisableRetry: true,
		PipelineMultiplex: -1, RingScaleEachConn: 8,
	})
	if err != nil {
		return nil, fmt.Errorf("connect to redis %s: %w", s.opts.Addr, classify(err))
	}
	s.client = c
	return c, nil
}

// Check connects and refuses a cluster.
func (s *Sink) Check(ctx context.Context) error {
	c, err := s.connect()
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, s.opts.Timeout)
	defer cancel()
	info, err := c.Do(ctx, c.B().Info().Section("cluster").Build()).ToString()
	if err != nil {
		return fmt.Errorf("ask redis %s for its kind: %w", s.opts.Addr, classify(err))
	}
	if strings.Contains(info, "cluster_enabled:1") {
		return fmt.Errorf("%w: redis %s is a cluster, which this sink does not support; name a single server", sink.ErrStopped, s.opts.Addr)
	}
	return nil
}

// Open reads the mark of a view and, where it is ours, raises its epoch.
func (s *Sink) Open(ctx context.Context, v sink.View, log [16]byte) (sink.Target, error) {
	if err := s.Check(ctx); err != nil {
		return nil, err
	}
	c, err := s.connect()
	if err != nil {
		return nil, err
	}
	opts, _ := v.Options.(ViewOptions)
	if opts.Key == "" {
		opts.Key = DefaultTemplate(v.Name)
	}
	tmpl, err := parseTemplate(opts.Key, v.Key)
	if err != nil {
		return nil, fmt.Errorf("%w: view %q: %w", sink.ErrStopped, v.Name, err)
	}
	t := &target{
		opts: s.opts, client: c, view: v.Name, log: fmt.Sprintf("%x", log), template: tmpl, ttl: opts.TTL,
		hash: "tw:" + v.Name, epochs: "redis/" + change.EscapeName(s.opts.Name) + "/" + change.EscapeName(v.Name),
	}
	if err := t.open(ctx); err != nil {
		return nil, fmt.Errorf("open view %q in redis %s: %w", v.Name, s.opts.Addr, classify(err))
	}
	return t, nil
}

// Close ends the connections.
func (s *Sink) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.client != nil {
		s.client.Close()
		s.client = nil
	}
	return nil
}

// savedEpoch is the last epoch that we raised or were about to; ok is false for a view that has never written here.
func (t *target) savedEpoch() (epoch uint64, ok bool, err error) {
	mark, err := t.opts.State.Checkpoint(t.epochs)
	if err != nil || mark == nil {
		return 0, false, err
	}
	epoch, err = strconv.ParseUint(string(mark), 10, 64)
	if err != nil {
		return 0, false, fmt.Errorf("checkpoint %s: %w", t.epochs, err)
	}
	return epoch, true, nil
}

// raise claims the next epoch, synced before it is used. found is the mark as it was read.
func (t *target) raise(ctx context.Context, found mark, build bool, seq uint64, fp string) error {
	saved, _, err := t.savedEpoch()
	if err != nil {
		return err
	}
	next := max(saved, found.epoch) + 1
	if err := t.opts.State.SaveCheckpoint(t.epochs, []byte(strconv.FormatUint(next, 10))); err != nil {
		return fmt.Errorf("save the epoch: %w", err)
	}
	flag := "0"
	if build {
		flag = "1"
	}
	args := []string{found.log, strconv.FormatUint(found.epoch, 10), t.log, strconv.FormatUint(next, 10), flag, strconv.FormatUint(seq, 10), fp}
	ctx, cancel := context.WithTimeout(ctx, t.opts.Timeout)
	defer cancel()
	ok, err := claimScript.Exec(ctx, t.client, []string{t.hash}, args).AsInt64()
	if err != nil {
		return classify(err)
	}
	if ok != 1 {
		return errors.New("the mark " + t.hash + " changed while it was claimed")
	}
	t.epoch = next
	return nil
}
