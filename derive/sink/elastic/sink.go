package elastic

import (
	"context"
	"crypto/tls"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/elastic/elastic-transport-go/v8/elastictransport"
	"github.com/elastic/go-elasticsearch/v8/esapi"

	"github.com/tailwater/tailwater/derive/sink"
)

// Options of a search sink.
type Options struct {
	URLs     []string // without user and password
	Username string
	Password string
	APIKey   string        // encoded id:key; instead of user and password
	TLS      *tls.Config   // nil = the system's roots
	Timeout  time.Duration // of one request; default 60s
	Compress bool          // gzip request bodies; default false

	InFlight  int           // bulk requests at a time; default 4
	BulkBytes int           // of one bulk request; default 5 MiB
	KeepOld   bool          // keep the generation before the current one; default false
	Frontier  func() uint64 // of the log: no version above it is ours
	Logger    *slog.Logger  // default: discards

	// Transport replaces the HTTP transport, for tests.
	Transport http.RoundTripper
}

// ViewOptions are the sink.View.Options of this sink.
type ViewOptions struct {
	Index    string // the alias; default: the view's name in lower case
	Mapping  []MappingField
	Settings map[string]any // of the index: string, bool, int64, json.Number, []any, map[string]any
}

// MappingField overrides the mapping of one field.
type MappingField struct {
	Field   string         // path in the document, "reviews.title"
	Type    string         // "" = derived
	Keyword bool           // text with a .keyword beside it
	Params  map[string]any // further parameters
}

// Sink is one cluster. It may be used from any goroutine.
type Sink struct {
	opts Options

	mu     sync.Mutex // guards what follows
	client *elastictransport.Client
	server *serverInfo
}

// serverInfo is what a cluster says of itself.
type serverInfo struct {
	opensearch   bool
	oss          bool // Elasticsearch without the free features (unsigned_long)
	major, minor int
}

// New returns the sink; it does no I/O.
func New(opts Options) *Sink {
	if opts.Timeout <= 0 {
		opts.Timeout = 60 * time.Second
	}
	if opts.InFlight <= 0 {
		opts.InFlight = 4
	}
	if opts.BulkBytes <= 0 {
		opts.BulkBytes = 5 << 20
	}
	if opts.Frontier == nil {
		opts.Frontier = func() uint64 { return 1<<53 - 1 }
	}
	if opts.Logger == nil {
		opts.Logger = slog.New(slog.DiscardHandler)
	}
	return &Sink{opts: opts}
}

func (s *Sink) transport() (*elastictransport.Client, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.client != nil {
		return s.client, nil
	}
	var urls []*url.URL
	for _, text := range s.opts.URLs {
		u, err := url.Parse(text)
		if err != nil || u.Host == "" {
			return nil, fmt.Errorf("%w: search server's URL is not one (http://HOST:PORT)", sink.ErrStopped)
		}
		urls = append(urls, u)
	}
	transport := s.opts.Transport
	if transport == nil {
		t := http.DefaultTransport.(*http.Transport).Clone()
		t.MaxIdleConnsPerHost, t.TLSClientConfig = s.opts.InFlight+2, s.opts.TLS
		transport = t
	}
	opts := []elastictransport.Option{elastictransport.WithURLs(urls...), elastictransport.WithTransport(transport), elastictransport.WithUserAgent("tailwater"), elastictransport.WithDisableRetry()}
	switch {
	case s.opts.APIKey != "":
		opts = append(opts, elastictransport.WithAPIKey(s.opts.APIKey))
	case s.opts.Username != "":
		opts = append(opts, elastictransport.WithBasicAuth(s.opts.Username, s.opts.Password))
	}
	if s.opts.Compress {
		opts = append(opts, elastictransport.WithCompression())
	}
	var err error
	s.client, err = elastictransport.NewClient(opts...)
	return s.client, err
}

// Check connects and asks the server what it is.
func (s *Sink) Check(ctx context.Context) error {
	_, err := s.info(ctx)
	return err
}

func (s *Sink) info(ctx context.Context) (*serverInfo, error) {
	var answer struct {
		Version struct {
			Number       string `json:"number"`
			Distribution string `json:"distribution"`
			Flavor       string `json:"build_flavor"`
		} `json:"version"`
	}
	if err := s.do(ctx, esapi.InfoRequest{}, &answer); err != nil {
		return nil, fmt.Errorf("ask the search server what it is: %w", err)
	}
	v := answer.Version
	info := &serverInfo{opensearch: v.Distribution == "opensearch", oss: v.Flavor == "oss"}
	parts := strings.SplitN(v.Number, ".", 3)
	if len(parts) < 2 {
		return nil, fmt.Errorf("%w: the server at this URL is neither Elasticsearch nor OpenSearch", sink.ErrStopped)
	}
	info.major, _ = strconv.Atoi(parts[0])
	info.minor, _ = strconv.Atoi(parts[1])
	if !info.opensearch && (info.major < 7 || info.major == 7 && info.minor < 10) {
		return nil, fmt.Errorf("%w: Elasticsearch %s is too old; 7.10 is the oldest that can refuse to make an index by a write", sink.ErrStopped, v.Number)
	}
	s.mu.Lock()
	s.server = info
	s.mu.Unlock()
	return info, nil
}

// unsignedLong reports whether the server has that type.
func (i *serverInfo) unsignedLong() bool {
	if i.opensearch {
		return i.major > 2 || i.major == 2 && i.minor >= 8
	}
	return !i.oss
}

// Open finds the generations of a view and their stamps.
func (s *Sink) Open(ctx context.Context, v sink.View, log [16]byte) (sink.Target, error) {
	info, err := s.info(ctx)
	if err != nil {
		return nil, err
	}
	opts, _ := v.Options.(ViewOptions)
	if opts.Index == "" {
		opts.Index = strings.ToLower(v.Name)
	}
	if err := checkAlias(opts.Index); err != nil {
		return nil, fmt.Errorf("%w: view %q: %w", sink.ErrStopped, v.Name, err)
	}
	t := &target{sink: s, view: v.Name, alias: opts.Index, settings: opts.Settings, log: log}
	t.remap = func(info *serverInfo) (err error) {
		t.mapping, err = buildMapping(v.Fields, opts.Mapping, info)
		return err
	}
	if err := t.remap(info); err != nil {
		return nil, fmt.Errorf("%w: view %q: %w", sink.ErrStopped, v.Name, err)
	}
	if err := t.find(ctx); err != nil {
		return nil, err
	}
	return t, nil
}

// checkAlias tells whether a name can be an alias and the stem of index names.
func checkAlias(name string) error {
	if name != strings.ToLower(name) || strings.ContainsAny(name, `\/*?"<>| ,#:`) || strings.HasPrefix(name, "-") ||
		strings.HasPrefix(name, "_") || strings.HasPrefix(name, "+") || strings.HasPrefix(name, ".") || name == "" || len(name) > 230 {
		return fmt.Errorf("index name %q: it must be lower case, not begin with - _ + or . and hold none of \\ / * ? \" < > | , # : and blanks", name)
	}
	return nil
}

// Close ends idle connections.
func (s *Sink) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.client == nil {
		return nil
	}
	c := s.client
	s.client = nil
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	return c.Close(ctx)
}
