package redis

import (
	"context"
	"fmt"
	"strings"

	"github.com/keyplane/keyplane/internal/printable"
)

// wantedEvents are the classes of notifications that a server without tracking must send:
// K for notifications by key, A for all kinds of change.
const wantedEvents = "KA"

// enableEvents enables the server's keyspace notifications if necessary.
func (n *node) enableEvents(ctx context.Context) error {
	have, err := n.events(ctx)
	if err != nil || eventsSuffice(have) {
		return err
	}
	if err := n.data.ConfigSet(ctx, "notify-keyspace-events", mergedEvents(have)).Err(); err != nil {
		return n.eventsOff(have, err)
	}
	n.log.Info("redis keyspace notifications were switched on", "were", have)
	return nil
}

// events returns the enabled notification classes of the server.
func (n *node) events(ctx context.Context) (string, error) {
	answer, err := n.data.ConfigGet(ctx, "notify-keyspace-events").Result()
	if err != nil {
		return "", n.eventsOff("?", err)
	}
	return answer["notify-keyspace-events"], nil
}

// eventsOff returns the error for a server without notifications that this user cannot
// enable. It has the command that an administrator needs. A server of a Cluster tells the addresses
// of the others, so they are quoted.
func (n *node) eventsOff(have string, err error) error {
	return fmt.Errorf("%w: its notify-keyspace-events are %q, and it refuses to change that (%w): run "+
		"redis-cli -u %s CONFIG SET notify-keyspace-events %s, and put notify-keyspace-events %[5]s into its configuration",
		ErrEventsOff, have, err, printable.Word("redis://"+n.addr), wantedEvents)
}

// checkEvents ends a watch if the notifications have been disabled.
func (n *node) checkEvents(ctx context.Context) error {
	if n.greeted.tracking {
		return nil
	}
	have, err := n.events(ctx)
	if err == nil && !eventsSuffice(have) {
		err = fmt.Errorf("%w any more: notify-keyspace-events are %q on %s", ErrEventsOff, have, n.addr)
	}
	return err
}

// eventsSuffice reports whether the classes cover all changes of a string: general and
// string commands, expiry, eviction.
func eventsSuffice(have string) bool {
	all := func(classes string) bool {
		for _, class := range classes {
			if !strings.ContainsRune(have, class) {
				return false
			}
		}
		return true
	}
	return all("K") && (all("A") || all("g$xe"))
}

// mergedEvents returns the wanted classes and those already enabled.
func mergedEvents(have string) string {
	merged := wantedEvents
	for _, class := range have {
		if !strings.ContainsRune(merged, class) {
			merged += string(class)
		}
	}
	return merged
}
