// Package publish writes the state of each declared value into stores, so that its
// author can see it there. The status has the key of the value, with
// config-status/ in place of config/.
//
//	p := publish.New(sched, publish.Options{Name: "etcd", Store: etcd, Root: "/vnf-agent/vpp1/"})
//	err := p.Run(ctx)
//
// A status is the JSON of a ligato.kvscheduler.ValueStatus. Derived values have no
// key of their own: those that are not as declared appear in the details of their
// base value. A removed value is published as REMOVED, for clients that watch its
// key, and then its key is deleted.
//
// A [Publisher] writes into one store, in batches of bounded size and rate. It keeps
// only the latest status of each key and writes a key at most once per Period, so
// memory is bounded by the number of keys. Statuses of values that are not as
// declared come first.
//
// Statuses are written in a session of the store. They vanish with the agent, at the
// latest after the session's time to live, and are written again after a lost
// session, or where a store that went back has others. Statuses of an earlier run are
// replaced, or removed if their keys are gone. A store that is down is retried.
//
//	row of the queue | meaning                                 | next
//	urgent, normal   | dirty: the store may be out of date     | write
//	delayed          | written less than Period ago            | dirty or clean after Period
//	failed           | the last write failed                   | dirty at once; the store is retried
//	refused          | the store works, but refuses this key   | dirty after refusalPause
//	leftover         | of an earlier run, value not known yet  | dirty after LeftoverGrace
//
// statuses.go indexes the statuses and queue.go decides what to write next; both are
// pure. status.go encodes, writer.go writes. One goroutine owns all state. Tests:
// the queue by stories and random histories; the Publisher in synthetic time with a
// failing store, and with the real stores.
package publish

import (
	"context"
	"log/slog"
	"time"

	"github.com/keyplane/keyplane/internal/backoff"
	"github.com/keyplane/keyplane/kvdbsync"
	"github.com/keyplane/keyplane/scheduler"
)

// Prefixes of declared values and of their statuses, relative to Root.
const (
	config = "config/"
	below  = "config-status/"
)

// Options configure a Publisher. Name, Store and Root are required.
type Options struct {
	Name  string // name of the store, for logs
	Store kvdbsync.Publisher
	Root  string // prefix of the agent's keys: "/vnf-agent/vpp1/"

	// TTL is the lifetime of keys after the agent was killed or has lost the store.
	// Defaults to that of the store.
	TTL time.Duration
	// BatchInterval is the minimum time between two batches of at most
	// kvdbsync.MaxApply keys. After a slow batch, the interval is four times its
	// duration, so that the store has time for others. Defaults to 50 ms.
	BatchInterval time.Duration
	// Period is the minimum time between two writes of a key. Defaults to 1 s.
	Period time.Duration
	// LeftoverGrace is the time after the start during which keys of an earlier run
	// stay although their value is unknown: its source may still be listing.
	// Defaults to 10 s.
	LeftoverGrace time.Duration
	// Listed receives when the store was listed anew: it may have been restored from an older copy, or
	// have lost writes in a failover, while the session lives on. Then its texts are compared with those
	// that were written. Defaults to never.
	Listed <-chan struct{}
	// Timeout bounds each request to the store, except listings, which may take minutes.
	// Defaults to 10 s.
	Timeout time.Duration
	// MinBackoff and MaxBackoff bound the wait after a failure. The wait is random
	// below a bound that doubles each time. Default to 100 ms and 30 s.
	MinBackoff, MaxBackoff time.Duration

	Log *slog.Logger // Defaults to discarding
}

// withDefaults returns the options with defaults in place of zero values.
func (o Options) withDefaults() Options {
	for at, or := range map[*time.Duration]time.Duration{
		&o.BatchInterval: 50 * time.Millisecond, &o.Period: time.Second, &o.LeftoverGrace: 10 * time.Second, &o.Timeout: 10 * time.Second,
		&o.MinBackoff: 100 * time.Millisecond, &o.MaxBackoff: 30 * time.Second,
	} {
		if *at <= 0 {
			*at = or
		}
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	return o
}

// prefix returns the common prefix of all statuses.
func (o Options) prefix() string { return o.Root + below }

// A Publisher writes the status of all values into one store.
type Publisher struct {
	sched *scheduler.Scheduler
	o     Options
}

// New returns a Publisher. It does nothing before Run.
func New(sched *scheduler.Scheduler, o Options) *Publisher {
	return &Publisher{sched, o.withDefaults()}
}

// Run publishes until ctx ends. Then it removes the published statuses and returns
// nil. It returns early if the store is read-only (kvdbsync.ErrReadOnly).
func (p *Publisher) Run(ctx context.Context) error {
	watch := p.sched.Watch("")
	defer watch.Close()
	now := time.Now()
	w := &writer{
		Options: p.o, queue: newWriteQueue(p.o, now), watch: watch, nextWrite: now, batchSize: kvdbsync.MaxApply,
		retry: backoff.Backoff{Min: p.o.MinBackoff, Max: p.o.MaxBackoff},
	}
	w.update()
	w.run(ctx)
	return nil
}
