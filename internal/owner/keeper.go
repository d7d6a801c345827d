package owner

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/keyplane/keyplane/internal/backoff"
	"github.com/keyplane/keyplane/internal/guard"
	"github.com/keyplane/keyplane/kvdbsync"
)

// Options configure a Keeper. Store, Leaser, Key and Self are required.
type Options struct {
	Store  string // name of the store, for people
	Leaser kvdbsync.Leaser
	Key    string // see Key
	Self   Holder

	// TTL is the time for which the key outlives a dead agent. Defaults to 10 s.
	TTL time.Duration
	// Timeout is the longest duration of one request to the store. Defaults to 3 s.
	Timeout time.Duration
	// Pause stops the agent's work until release is called. It is called when the store
	// names another agent that may be dead or alive. Defaults to doing nothing.
	Pause func(ctx context.Context) (release func())
	// Runs reports whether a process of this PID namespace runs that began at a certain
	// time, in clock ticks since boot. Defaults to a look at /proc.
	Runs func(pid int, started uint64) bool
	Log  *slog.Logger // Defaults to discarding
}

// withDefaults returns the options with the documented defaults.
func (o Options) withDefaults() Options {
	for at, or := range map[*time.Duration]time.Duration{&o.TTL: 10 * time.Second, &o.Timeout: 3 * time.Second} {
		if *at <= 0 {
			*at = or
		}
	}
	if o.Pause == nil {
		o.Pause = func(context.Context) func() { return func() {} }
	}
	if o.Runs == nil {
		o.Runs = running
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	o.Log = o.Log.With("source", o.Store, "key", o.Key)
	return o
}

const (
	// slack is the largest accepted delay of a store that ends a lease.
	slack = 3 * time.Second
	// poll is the period of looks at a lease while its end is awaited.
	poll = 250 * time.Millisecond
	// closing is the longest delay of the agent's end by the release of the key.
	closing = time.Second
)

// A Keeper holds the label in one store.
type Keeper struct {
	o     Options
	asked chan chan struct{}

	// Owned by the goroutine of Take and Run.
	lease      kvdbsync.Lease // nil: there is none
	value      []byte         // of the key, while it is held; different for each lease
	term       int            // number of leases so far
	held       bool
	heldBefore bool // the label was held before
	warned     bool
	retry      backoff.Backoff
}

// NewKeeper returns a Keeper that does nothing until Take or Run.
func NewKeeper(o Options) *Keeper {
	return &Keeper{
		o: o.withDefaults(), asked: make(chan chan struct{}),
		retry: backoff.Backoff{Min: time.Second, Max: 30 * time.Second},
	}
}

// Take takes the label before the agent changes anything. The error is a *TakenError if
// another agent has it. If the other agent may be dead, Take waits for the end of its
// lease. If the store does not answer within patience, or refuses, Run continues the
// attempts.
func (k *Keeper) Take(ctx context.Context, patience time.Duration) error {
	bounded, cancel := context.WithTimeout(ctx, patience)
	other, err := k.claim(bounded)
	cancel()
	switch {
	case errors.Is(err, ErrTaken):
		return err
	case err != nil:
		k.o.Log.Debug("the label is not held yet in this store", "err", err)
		return nil
	case other != nil:
		return k.outlast(ctx, *other)
	}
	return nil
}

// Run holds the label until ctx ends, and then releases it. A lost label is taken again.
// Before the end of ctx, Run returns only with a *TakenError.
func (k *Keeper) Run(ctx context.Context) error {
	defer k.drop(ctx)
	var asker chan struct{} // waits for the result of the next attempt
	for ctx.Err() == nil {
		if !k.held {
			if err := k.obtain(ctx, asker != nil); err != nil {
				return err
			}
		}
		if asker != nil {
			close(asker)
		}
		asker = k.wait(ctx)
	}
	return nil
}

// Admit waits until the label is held, or cannot be held in this store for the time being.
// A watch calls it after it has reached the store, and before it applies the content.
// While another agent has the label, Admit waits until ctx ends. It needs a running Run.
func (k *Keeper) Admit(ctx context.Context) error {
	asker := make(chan struct{})
	select {
	case k.asked <- asker:
	case <-ctx.Done():
		return ctx.Err()
	}
	select {
	case <-asker:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// wait waits until the label is lost, a look is due, or a caller of Admit asks for it.
func (k *Keeper) wait(ctx context.Context) (asker chan struct{}) {
	pause := k.o.TTL / 2
	var lost <-chan struct{}
	if k.held {
		lost = k.lease.Lost()
	} else {
		pause = k.retry.Next()
	}
	timer := time.NewTimer(pause)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return nil
	case <-timer.C:
		k.look(ctx)
		return nil
	case <-lost:
		k.drop(ctx)
		return nil
	case asker = <-k.asked:
	}
	select {
	case <-lost:
		k.drop(ctx)
	default:
	}
	return asker
}

// look notices that the key was deleted or given to another agent: by hand, by a copy of
// this installation, or after it had expired.
func (k *Keeper) look(ctx context.Context) {
	if !k.held {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, k.o.Timeout)
	defer cancel()
	var holds []byte
	err := guard.Run(func() (err error) {
		holds, err = k.lease.Get(ctx, k.o.Key)
		return err
	})
	if err != nil && !errors.Is(err, kvdbsync.ErrNotFound) {
		return // the lease itself reports its loss
	}
	if bytes.Equal(holds, k.value) {
		return
	}
	k.o.Log.Info("the key of the label's owner is gone or changed")
	k.held = false
}

// obtain makes one attempt. If reachable is true, the store answers other requests, so a
// failure does not mean that the store is unreachable.
func (k *Keeper) obtain(ctx context.Context, reachable bool) error {
	other, err := k.claim(ctx)
	if err == nil && other != nil {
		release := k.o.Pause(ctx)
		err = k.outlast(ctx, *other)
		release()
	}
	switch {
	case errors.Is(err, ErrTaken):
		return err
	case err == nil || ctx.Err() != nil:
	case reachable && !k.warned:
		k.warned = true
		k.o.Log.Warn("no lease in this store keeps a second agent of the label away", "err", err,
			"hint", "the store must take writes, and its user needs the right to write this key")
	default:
		k.o.Log.Debug("the label is not held in this store", "err", err)
	}
	return nil
}

// claim tries to get the key. other is a holder that may be dead. The error is a
// *TakenError if the holder lives.
func (k *Keeper) claim(ctx context.Context) (other *Holder, err error) {
	ctx, cancel := context.WithTimeout(ctx, k.o.Timeout)
	defer cancel()
	if k.lease == nil {
		err = guard.Run(func() (err error) {
			k.lease, err = k.o.Leaser.Lease(ctx, k.o.TTL)
			return err
		})
		if err != nil {
			k.lease = nil
			return nil, err
		}
		self := k.o.Self
		k.term++
		self.Term, self.Expires = k.term, int((k.lease.TTL()+time.Second-1)/time.Second)
		k.value = self.bytes()
	}
	err = guard.Run(func() (err error) {
		other, err = k.claimIn(ctx)
		return err
	})
	if err != nil {
		k.drop(ctx)
	}
	return other, err
}

// claimIn claims the key until this agent or another living one has it. The holder it
// returns is one of whom nobody can say whether it lives; nil: the key is ours.
func (k *Keeper) claimIn(ctx context.Context) (*Holder, error) {
	var old []byte
	for {
		holds, err := k.lease.Claim(ctx, k.o.Key, old, k.value)
		switch {
		case err != nil:
			return nil, err
		case bytes.Equal(holds, k.value):
			k.got()
			return nil, nil
		case holds == nil:
			old = nil
			continue
		}
		other, ok := parse(holds)
		if ok {
			switch livenessOf(other, k.o.Self, k.o.Runs) {
			case living:
				return nil, &TakenError{Holder: other, Where: k.where()}
			case unknown:
				return &other, nil
			case gone: // claim the key of the dead holder
			}
		}
		old = holds // its holder is dead
	}
}

// where names the key and its store, for errors.
func (k *Keeper) where() string { return "the key " + k.o.Key + " in " + k.o.Store }

// got notes that the label is ours in this store, and ends the back-off.
func (k *Keeper) got() {
	k.held = true
	k.retry.Reset()
	if k.heldBefore {
		k.o.Log.Info("the label is held again in this store")
	} else {
		k.o.Log.Debug("the label is held in this store", "ttl", k.lease.TTL())
	}
	k.heldBefore, k.warned = true, false
}

// outlast waits for the end of the lease of an agent that may be dead. If the lease does
// not end in time, that agent lives.
func (k *Keeper) outlast(ctx context.Context, other Holder) error {
	ttl := cmp.Or(time.Duration(other.Expires)*time.Second, k.o.TTL)
	k.o.Log.Info("another agent has the label and may be dead: waiting for the end of its lease", "owner", other.String(), "at_most", ttl+slack)
	end := time.Now().Add(ttl + slack)
	timer := time.NewTimer(poll)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-timer.C:
		}
		next, err := k.claim(ctx)
		switch {
		case errors.Is(err, ErrTaken), err == nil && next == nil:
			return err
		case next != nil && next.Life != other.Life:
			return &TakenError{Holder: *next, Where: k.where()} // it has just taken the label
		case err != nil && time.Now().After(end):
			return err // the store is unreachable, so the owner is unknown
		case time.Now().After(end):
			return &TakenError{Holder: other, Where: k.where()}
		}
		timer.Reset(poll)
	}
}

// drop ends the lease. Its keys vanish at once, or when the lease expires.
func (k *Keeper) drop(ctx context.Context) {
	lease := k.lease
	k.lease, k.held = nil, false
	if lease == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), closing)
	defer cancel()
	if err := guard.Run(func() error { return lease.Close(ctx) }); err != nil {
		k.o.Log.Debug("a lease is left to its time", "err", err)
	}
}

// Close releases the label if Run has not been called.
func (k *Keeper) Close() { k.drop(context.Background()) }
