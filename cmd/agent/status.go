package main

import (
	"log/slog"
	"slices"
	"time"

	"github.com/keyplane/keyplane/kvdbsync"
	"github.com/keyplane/keyplane/orchestrator/publish"
	"github.com/keyplane/keyplane/scheduler"
)

// publishing is into which stores status is published, and how often each of them
// is written to in a second.
type publishing struct {
	all    bool
	stores []string
	rate   int
}

// publishers are a task for each store that status is published into.
func (s stores) publishers(root string, p publishing, sched *scheduler.Scheduler, log *slog.Logger) (out []task) {
	for _, one := range s {
		into, able := one.connector.(kvdbsync.Publisher)
		switch named := slices.Contains(p.stores, one.name); {
		case able && (named || p.all):
			out = append(out, publish.New(sched, publish.Options{
				Name: one.name, Store: into, Root: root, Every: time.Second / time.Duration(p.rate), Log: log,
			}).Run)
		case named:
			log.Warn("status cannot be published into this store", "source", one.name)
		}
	}
	for _, name := range p.stores {
		if !slices.Contains(s.names(), name) {
			log.Warn("status is not published into a store that is not used", "source", name)
		}
	}
	return out
}
