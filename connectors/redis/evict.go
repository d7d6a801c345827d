package redis

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/keyplane/keyplane/kvdbsync"
)

// noteEvictions warns of a server that may drop keys when its memory is full. Its
// doing so looks like a deletion, and the network goes with it.
func (n *node) noteEvictions(ctx context.Context) error {
	about, err := n.info(ctx, "memory")
	if err != nil {
		return err
	}
	policy := infoField(about, "maxmemory_policy")
	if limit := infoField(about, "maxmemory"); limit == "" || limit == "0" || policy == "noeviction" {
		return nil // and n.evicted stays empty: never asked again
	}
	n.log.Warn("redis may evict keys, which takes them out of the network; want maxmemory-policy noeviction", "policy", policy)
	n.evicted, err = n.evictions(ctx)
	return err
}

// alarm tells when keys that are gone may have been evicted.
func (w *watch) alarm(ctx context.Context, events []kvdbsync.Event) error {
	gone := slices.IndexFunc(events, func(e kvdbsync.Event) bool { return e.Value == nil && e.Err == nil })
	if gone < 0 {
		return nil
	}
	for _, n := range w.nodes {
		if n.evicted == "" {
			continue
		}
		now, err := n.evictions(ctx)
		if err != nil {
			return err
		}
		if now != n.evicted {
			n.log.Error("redis evicts keys, and those that are gone may be among them; want maxmemory-policy noeviction, or more memory",
				"evicted", now, "before", n.evicted, "gone", events[gone].Key)
			n.evicted = now
		}
	}
	return nil
}

// evictions is how many keys the server has evicted since it started.
func (n *node) evictions(ctx context.Context) (string, error) {
	about, err := n.info(ctx, "stats")
	return infoField(about, "evicted_keys"), err
}

// info returns nothing where the server does not let us ask.
func (n *node) info(ctx context.Context, section string) (string, error) {
	about, err := n.data.Info(ctx, section).Result()
	if err != nil && !refused(err) {
		return "", fmt.Errorf("redis %s: %w", n.addr, err)
	}
	return about, nil
}

// infoField finds "name:value" on a line of its own.
func infoField(about, name string) string {
	for line := range strings.Lines(about) {
		if value, ok := strings.CutPrefix(line, name+":"); ok {
			return strings.TrimSpace(value)
		}
	}
	return ""
}
