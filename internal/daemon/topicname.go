package daemon

import (
	"fmt"
	"path"
	"strings"

	"github.com/tailwater/tailwater/change"
	"github.com/tailwater/tailwater/config"
	"github.com/tailwater/tailwater/eventlog"
	"github.com/tailwater/tailwater/server"
)

// matching returns the topics that a glob names; in it * also crosses dots.
// Where no topic has such a name, the names of tables, views and sinks are also
// compared as they are outside the log, without change.EscapeName's escapes.
func matching(log eventlog.Log, glob string) ([]eventlog.Topic, error) {
	all := log.Topics()
	for _, name := range []func(eventlog.Topic) string{topicName, plainName} {
		topics, err := named(all, glob, name)
		if err != nil || len(topics) > 0 {
			return topics, err
		}
	}
	return nil, fmt.Errorf("%w: no topic matches %q; %s", server.ErrNotFound, glob, topicHint(all, glob))
}

func topicName(t eventlog.Topic) string { return t.Spec.Name }

// plainName is a topic's name without escapes: shop.public.order items. Two topics
// may share one, such as those of table b.c in schema a and table c in schema a.b.
func plainName(t eventlog.Topic) string { return plain(t.Spec.Name) }

func plain(name string) string {
	parts := strings.Split(name, ".")
	for i, p := range parts {
		if text, err := change.UnescapeName(p); err == nil {
			parts[i] = text
		}
	}
	return strings.Join(parts, ".")
}

// named returns the topics whose name is the glob, or those that it matches.
func named(all []eventlog.Topic, glob string, name func(eventlog.Topic) string) ([]eventlog.Topic, error) {
	var same, topics []eventlog.Topic
	var names []string
	slashes := strings.NewReplacer("/", "\x00") // which * would not cross
	for _, t := range all {
		n := name(t)
		if n == glob {
			same, names = append(same, t), append(names, t.Spec.Name)
		}
		if ok, err := path.Match(slashes.Replace(glob), slashes.Replace(n)); err != nil {
			return nil, fmt.Errorf("%w: topic glob %q: %v", server.ErrBadRequest, glob, err)
		} else if ok {
			topics = append(topics, t)
		}
	}
	if len(same) > 1 {
		return nil, fmt.Errorf("%w: %q may be any of %s; name one so", server.ErrBadRequest, glob, strings.Join(names, ", "))
	}
	if len(same) == 1 {
		return same, nil
	}
	return topics, nil
}

func topicHint(all []eventlog.Topic, glob string) string {
	var names, plains []string
	for _, t := range all {
		names, plains = append(names, t.Spec.Name), append(plains, plainName(t))
	}
	if s := config.Suggest(glob, names); s != "" {
		return fmt.Sprintf("did you mean %q?", s)
	}
	if s := config.Suggest(glob, plains); s != "" {
		for i, p := range plains {
			if p == s {
				return fmt.Sprintf("did you mean %q?", names[i])
			}
		}
	}
	return "tailwater log topics lists them"
}

// escaped returns the topic that a name means, which may be written without
// escapes; a name that means none, or several, as it is.
func escaped(log eventlog.Log, name string) string {
	if _, ok := log.Topic(name); ok {
		return name
	}
	found := name
	for _, t := range log.Topics() {
		if plainName(t) != name && plainName(t) != plain(name) {
			continue
		}
		if found != name {
			return name
		}
		found = t.Spec.Name
	}
	return found
}
