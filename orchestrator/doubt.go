package orchestrator

import (
	"time"

	"github.com/keyplane/keyplane/kvdbsync"
)

// doubt holds back the removals of a change in which a new listing shows nothing
// of what a layer had: a store that was emptied or is not filled yet looks just
// like one from which everything was deleted. A second listing decides. Removals
// that a watch tells are obeyed at once.
func (o *Orchestrator) doubt(l *layer, c *kvdbsync.Change) {
	if c.Resynced && len(l.doubted) == 0 && l.emptiedBy(c.Events) {
		o.log.Warn("source suddenly shows nothing: what it declared stays until it is listed again", "source", l.Name, "keys", len(l.entries), "in", o.grace)
		l.doubted = make(map[string]bool, len(c.Events))
		for _, e := range c.Events {
			l.doubted[e.Key] = true
		}
		c.Events = nil
		if again, ok := l.Input.(interface{ Relist() }); ok {
			time.AfterFunc(o.grace, again.Relist)
		}
		return
	}
	for _, e := range c.Events {
		delete(l.doubted, e.Key)
	}
	if !c.Resynced {
		return
	}
	if len(l.doubted) > 0 {
		o.log.Warn("source still lacks what it declared: that goes now", "source", l.Name, "keys", len(l.doubted))
	}
	for key := range l.doubted {
		c.Events = append(c.Events, kvdbsync.Event{Key: key})
	}
	l.doubted = nil
}

// emptiedBy says that events remove all that the layer has.
func (l *layer) emptiedBy(events []kvdbsync.Event) bool {
	if len(l.entries) == 0 || len(events) != len(l.entries) {
		return false
	}
	for _, e := range events {
		if e.Value != nil || e.Err != nil || l.entries[e.Key] == nil {
			return false
		}
	}
	return true
}
