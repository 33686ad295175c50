package daemon

import (
	"errors"
	"strings"
	"testing"

	"github.com/tailwater/tailwater/change"
	"github.com/tailwater/tailwater/eventlog"
	"github.com/tailwater/tailwater/eventlog/logtest"
	"github.com/tailwater/tailwater/server"
)

func TestMatching(t *testing.T) {
	log := logtest.Mem()
	for _, name := range []string{
		change.TableTopic("my-shop", "public", "order items"), change.TableTopic("my-shop", "public", "a/b[1]"), change.TableTopic("my-shop", "public", "plain"),
		change.TableTopic("my-shop", "a", "b.c"), change.TableTopic("my-shop", "a.b", "c"), change.TopicView + change.EscapeName("product-search"), "_messages.my-shop",
	} {
		if _, err := log.EnsureTopic(eventlog.TopicSpec{Name: name}); err != nil {
			t.Fatal(err)
		}
	}
	for _, tt := range []struct{ glob, want string }{
		{"my-2dshop.public.order-20items", "my-2dshop.public.order-20items"},
		{"my-shop.public.order items", "my-2dshop.public.order-20items"},
		{"my-shop.public.a/b[1]", "my-2dshop.public.a-2fb-5b1-5d"},
		{"my-shop.public.*", "my-2dshop.public.a-2fb-5b1-5d my-2dshop.public.order-20items my-2dshop.public.plain"},
		{"my-2dshop.public.p*", "my-2dshop.public.plain"},
		{"view.product-search", "view.product-2dsearch"},
		{"_messages.my-shop", "_messages.my-shop"},
		{"my-2dshop.a.b-2ec", "my-2dshop.a.b-2ec"},
	} {
		topics, err := matching(log, tt.glob)
		var names []string
		for _, topic := range topics {
			names = append(names, topic.Spec.Name)
		}
		if got := strings.Join(names, " "); err != nil || len(names) != len(strings.Fields(tt.want)) || !sameWords(got, tt.want) {
			t.Errorf("%s matches %q, %v; want %q", tt.glob, got, err, tt.want)
		}
	}
	for glob, want := range map[string]struct {
		is   error
		text string
	}{
		"my-shop.a.b.c":               {server.ErrBadRequest, "may be any of my-2dshop.a.b-2ec, my-2dshop.a-2eb.c; name one so"},
		"my-shop.public.order itms":   {server.ErrNotFound, `did you mean "my-2dshop.public.order-20items"?`},
		"my-2dshop.public.plane":      {server.ErrNotFound, `did you mean "my-2dshop.public.plain"?`},
		"nothing like it whatever.at": {server.ErrNotFound, "tailwater log topics lists them"},
		"[":                           {server.ErrBadRequest, "topic glob"},
	} {
		if _, err := matching(log, glob); !errors.Is(err, want.is) || !strings.Contains(err.Error(), want.text) {
			t.Errorf("%s: %v; want %q", glob, err, want.text)
		}
	}
}

func TestEscaped(t *testing.T) {
	log := logtest.Mem()
	for _, name := range []string{change.TableTopic("my-shop", "public", "order items"), change.TableTopic("my-shop", "a", "b.c"), change.TableTopic("my-shop", "a.b", "c")} {
		if _, err := log.EnsureTopic(eventlog.TopicSpec{Name: name}); err != nil {
			t.Fatal(err)
		}
	}
	for name, want := range map[string]string{
		"my-2dshop.public.order-20items": "my-2dshop.public.order-20items",
		"my-shop.public.order items":     "my-2dshop.public.order-20items",
		"my-2dshop.public.order items":   "my-2dshop.public.order-20items",
		"my-shop.a.b.c":                  "my-shop.a.b.c", // two tables
		"my-shop.public.none":            "my-shop.public.none",
	} {
		if got := escaped(log, name); got != want {
			t.Errorf("escaped(%q) = %q, want %q", name, got, want)
		}
	}
}

func sameWords(a, b string) bool {
	for _, w := range strings.Fields(b) {
		if !strings.Contains(" "+a+" ", " "+w+" ") {
			return false
		}
	}
	return true
}
