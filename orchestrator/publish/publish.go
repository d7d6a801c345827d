// Package publish writes into stores what became of each declared value, so that who
// declares it can see it there: under the key of the value, with config-status/ for
// config/, stands its state, and the reason if it is not as declared.
//
//	p := publish.New(sched, publish.Options{Name: "etcd", Store: etcd, Root: "/vnf-agent/vpp1/"})
//	err := p.Run(ctx)
//
// What is written is the JSON of a ligato.kvscheduler.ValueStatus. Values that are
// derived from the declared one have no key of their own: those that are not as they
// should be are further details of it. A value that is removed is REMOVED, for whoever
// watches its key, and then the key is deleted.
//
// A [Publisher] writes into one store, the newest status of each key, in batches of
// a bounded size and rate, and each key at most once in a while; so it holds no more
// than the keys there are, whatever happens. What is not as declared comes first. All
// is written in a session of the store: it vanishes with the agent, at the latest when
// the session's time to live has passed, and is written again when a session was lost.
// What an earlier run has left is replaced, and removed if nobody knows its key any
// more. A store that is down is tried again until it is there.
//
// statuses.go indexes the statuses, queue.go decides what to write next, both pure; status.go
// is how it is written; writer.go writes. One goroutine owns all of it. Tests: the
// ledger by stories and random histories, the Publisher in synthetic time with a
// store that fails, and with the real stores.
package publish

import (
	"context"
	"log/slog"
	"time"

	"github.com/keyplane/keyplane/internal/backoff"
	"github.com/keyplane/keyplane/kvdbsync"
	"github.com/keyplane/keyplane/scheduler"
)

// Where declared values stand, and where their status does, below Root.
const (
	config = "config/"
	below  = "config-status/"
)

// Options are those of a Publisher. Name, Store and Root are required.
type Options struct {
	Name  string // of the store, for people
	Store kvdbsync.Publisher
	Root  string // of the agent's keys: "/vnf-agent/vpp1/"

	// TTL is how long keys outlive an agent that is killed, or has lost the store.
	// Defaults to what the store does.
	TTL time.Duration
	// Every is the time from one batch of at most kvdbsync.MaxApply keys to the next,
	// at least; it is also at least four times as long as the store took for the first.
	// Defaults to 50 ms.
	BatchInterval time.Duration
	// Period is the time from one write of a key to the next, at least. Defaults to 1 s.
	Period time.Duration
	// Patience is how long after the start a key of an earlier run stays that nobody
	// knows. Defaults to 10 s.
	LeftoverGrace time.Duration
	// Timeout is how long the store may take for one request. Defaults to 10 s.
	Timeout time.Duration
	// MinBackoff and MaxBackoff bound the wait after a failure, which is random below
	// a bound that doubles each time. Default to 100 ms and 30 s.
	MinBackoff, MaxBackoff time.Duration

	Log *slog.Logger // Defaults to discarding
}

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

func (o Options) prefix() string { return o.Root + below }

// A Publisher writes the status of all values into one store.
type Publisher struct {
	sched *scheduler.Scheduler
	o     Options
}

// New returns a Publisher that does nothing until it is run.
func New(sched *scheduler.Scheduler, o Options) *Publisher {
	return &Publisher{sched, o.withDefaults()}
}

// Run publishes until ctx ends, then takes away what it has written, and returns nil;
// at once if the store says kvdbsync.ErrReadOnly.
func (p *Publisher) Run(ctx context.Context) error {
	watch := p.sched.Watch("")
	defer watch.Close()
	now := time.Now()
	w := &writer{
		Options: p.o, queue: newWriteQueue(p.o, now), news: make(chan []*scheduler.Status), nextWrite: now, batchSize: kvdbsync.MaxApply,
		retry: backoff.Backoff{Min: p.o.MinBackoff, Max: p.o.MaxBackoff},
	}
	w.update(p.sched.Statuses(""))
	ctx, stop := context.WithCancel(ctx)
	fed := make(chan struct{})
	go func() {
		defer close(fed)
		feed(ctx, watch, w.news)
	}()
	w.run(ctx)
	stop()
	<-fed
	return nil
}

// feed hands on what a watch yields, until ctx ends.
func feed(ctx context.Context, watch *scheduler.Watch, to chan<- []*scheduler.Status) {
	for {
		news, err := watch.Next(ctx)
		if err != nil {
			return
		}
		select {
		case to <- news:
		case <-ctx.Done():
			return
		}
	}
}
