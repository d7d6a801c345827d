package owner

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"sync/atomic"
	"time"

	"github.com/keyplane/keyplane/internal/backoff"
	"github.com/keyplane/keyplane/internal/guard"
	"github.com/keyplane/keyplane/internal/wake"
	"github.com/keyplane/keyplane/kvdbsync"
)

// Options configure a Keeper. Store, Leaser, Key and Self are required.
type Options struct {
	Store  string // name of the store, for people
	Leaser kvdbsync.Leaser
	Key    string // see Key
	Self   Holder

	// Get reads a key of the store. It tells a store that refuses leases from one that is away. Defaults to
	// taking each store for away.
	Get func(ctx context.Context, key string) ([]byte, error)
	// TTL is the time for which the key outlives a dead agent. Defaults to 10 s.
	TTL time.Duration
	// Timeout is the longest duration of one request to the store. Defaults to 3 s.
	Timeout time.Duration
	// Turned is called after each change of Withhold's answer. It must not block. Defaults to doing nothing.
	Turned func()
	// Lost is called when the key or its lease is gone before its time: the store may have lost more, or be another one, which
	// not every server or proxy tells. It must not block. Defaults to doing nothing.
	Lost func()
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
	if o.Get == nil {
		o.Get = func(context.Context, string) ([]byte, error) { return nil, ErrUnsettled }
	}
	for _, told := range []*func(){&o.Turned, &o.Lost} {
		if *told == nil {
			*told = func() {}
		}
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
	// poll is the period of looks at the lease of another agent that may be dead, and the shortest one of attempts.
	poll = 250 * time.Millisecond
	// longest is the longest lease of another that counts. Agents take 10 s, and Consul makes 20 s of them.
	longest = time.Minute
	// mostVague is how many attempts in a row may fail without a refusal in a store that lets agents hold a label: a lease is
	// over at once, or there is no answer.
	mostVague = 4
	// closing is the longest delay of the agent's end by the release of the key.
	closing = time.Second
)

// A Keeper holds the label in one store, and says whether the content of that store may be applied.
//
//	Withhold      the label in this store                                    what comes from the store
//	nil           is ours, or the store lets nobody hold it                  is applied
//	ErrUnsettled  is not known: the store is away, our lease may be over     waits for the next attempt
//	*TakenError   is another agent's, under a lease that the store enforces  is read, and not applied
//
// What another writes there stops neither the agent nor its other stores: it has no effect on
// what comes from elsewhere, and none at all without a lease that ends.
type Keeper struct {
	o     Options
	asked wake.Signal // somebody waits for the next attempt
	now   atomic.Pointer[labelState]

	// Owned by the goroutine of Run.
	lease      kvdbsync.Lease // nil: there is none
	value      []byte         // of the key, while it is held; different for each lease
	term       int            // number of leases so far
	heldBefore bool           // the label was held before
	other      rival
	followed   string // the life of the last other agent whose claim counted
	warned     bool   // that the store lets nobody hold the label
	vague      int    // attempts in a row that failed without a refusal, though the store can be read
	retry      backoff.Backoff
}

// A labelState is what is known of the label at one moment. It is immutable, but for its end.
type labelState struct {
	why   error          // see Keeper
	lease kvdbsync.Lease // that of the label, if it is ours
	ended chan struct{}  // closed when another one replaces it
}

// A rival is another agent that has the label.
type rival struct {
	life   string    // "": there is none
	until  time.Time // its lease ends then, unless it renews it
	lives  bool      // it has renewed its lease, or has taken the label from us
	warned bool
}

// ErrUnsettled means that it is not known whether another agent has the label.
var ErrUnsettled = errors.New("it is not known yet whether another agent has the label in this store")

// NewKeeper returns a Keeper that does nothing until Run.
func NewKeeper(o Options) *Keeper {
	k := &Keeper{
		o: o.withDefaults(), asked: wake.New(),
		retry: backoff.Backoff{Min: time.Second, Max: 30 * time.Second},
	}
	k.now.Store(&labelState{why: ErrUnsettled, ended: make(chan struct{})})
	return k
}

// Withhold returns why nothing of the store may be applied now; nil: it may. It asks nobody,
// but compares the end of the lease with the clock, because this process may have slept. If nothing is known, the
// next attempt to find out begins. Any goroutine may call it.
func (k *Keeper) Withhold() error {
	why := k.now.Load().reason()
	if errors.Is(why, ErrUnsettled) {
		k.asked.Set()
	}
	return why
}

// reason returns why nothing may be applied; nil: it may.
func (s *labelState) reason() error {
	if s.why == nil && s.lease != nil && s.lease.Over() != nil {
		return ErrUnsettled
	}
	return s.why
}

// setState sets what is known. Whoever waits is told only of news: it would ask for the next attempt at once.
func (k *Keeper) setState(why error, lease kvdbsync.Lease) {
	if now := k.now.Load(); now.lease == nil && lease == nil && errors.Is(now.why, ErrUnsettled) && errors.Is(why, ErrUnsettled) {
		return
	}
	next := &labelState{why: why, lease: lease, ended: make(chan struct{})}
	close(k.now.Swap(next).ended)
	k.o.Turned()
}

// Run holds the label until ctx ends, and then releases it. A lost label is taken again, once nobody else has it.
func (k *Keeper) Run(ctx context.Context) error {
	defer k.drop(ctx)
	for ctx.Err() == nil {
		if k.held() {
			k.look(ctx)
		}
		if !k.held() {
			k.attempt(ctx)
		}
		k.wait(ctx)
	}
	return nil
}

// held reports that the label is ours.
func (k *Keeper) held() bool { return k.now.Load().lease != nil }

// wait waits until the label is lost, or a look or an attempt is due. Withhold asks for an attempt, but not for two at
// once.
func (k *Keeper) wait(ctx context.Context) {
	pause := k.o.TTL / 2
	var lost <-chan struct{}
	switch {
	case k.held():
		lost = k.lease.Lost()
	case k.other.life != "" && !k.other.lives:
		pause = poll
	case k.other.life == "":
		if pause = k.retry.Next(); !backoff.Sleep(ctx, poll) {
			return
		}
	}
	timer := time.NewTimer(pause)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-timer.C:
	case <-k.asked.C():
	case <-lost:
	}
	if k.held() && k.lease.Over() != nil {
		k.lost()
		k.drop(ctx)
	}
}

// look notices that the key was deleted or given to another agent: by hand, by a copy of
// this installation, or after it had expired.
func (k *Keeper) look(ctx context.Context) {
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
	k.lost()
}

// lost ends a label that was held.
func (k *Keeper) lost() {
	k.setState(ErrUnsettled, nil)
	k.o.Lost()
}

// attempt tries to get the label once, and sets what is known then.
func (k *Keeper) attempt(ctx context.Context) {
	other, err := k.claim(ctx)
	switch {
	case ctx.Err() != nil:
	case err == nil && other == nil:
		k.got()
	case err == nil:
		k.respect(*other)
	case k.other.life != "" && time.Now().Before(k.other.until):
		k.o.Log.Debug("the lease of another agent cannot be followed", "err", err)
	case k.refused(ctx, err):
		k.other = rival{}
		if !k.warned {
			k.warned = true
			k.o.Log.Warn("no lease in this store keeps a second agent of the label away", "err", err,
				"hint", "the store must take writes, and its user needs the right to write this key")
		}
		k.setState(nil, nil)
	default:
		k.o.Log.Debug("the label is not held in this store", "err", err)
		k.other = rival{}
		k.setState(ErrUnsettled, nil)
	}
}

// refused reports, after an attempt that failed with why, that the store lets nobody hold the label: it can be read. If
// another agent has it, as this one knows, or has taken it from this one, the attempt failed for another reason: a full store takes no writes. A store that was emptied may still
// show a lease to a proxy for a moment, and a busy one may leave a request unanswered, so only several of these in a row count.
func (k *Keeper) refused(ctx context.Context, why error) bool {
	if k.vague++; !errors.Is(why, kvdbsync.ErrSessionOver) && !unanswered(why) {
		k.vague = 0
	} else if k.vague < mostVague {
		return false
	}
	ctx, cancel := context.WithTimeout(ctx, k.o.Timeout)
	defer cancel()
	var holds []byte
	err := guard.Run(func() (err error) {
		holds, err = k.o.Get(ctx, k.o.Key)
		return err
	})
	if err != nil && !errors.Is(err, kvdbsync.ErrNotFound) {
		return false
	}
	other, ok := parse(holds)
	if ok && other.Life == k.followed { // its lease has not ended, or the key would be gone
		return false
	}
	return !ok || !k.heldBefore || dead(other, k.o.Self, false, k.o.Runs)
}

// unanswered reports whether a request has had no answer, and so neither success nor refusal.
func unanswered(err error) bool {
	return errors.Is(err, context.DeadlineExceeded) || errors.Is(err, os.ErrDeadlineExceeded)
}

// claim tries to get the key. other is the agent that has it instead.
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

// claimIn claims the key until this agent has it, or another one whose claim counts.
func (k *Keeper) claimIn(ctx context.Context) (*Holder, error) {
	var old []byte
	for {
		holds, err := k.lease.Claim(ctx, k.o.Key, old, k.value)
		switch {
		case err != nil:
			return nil, err
		case bytes.Equal(holds, k.value):
			return nil, nil
		case holds == nil:
			old = nil
			continue
		}
		if other, ok := parse(holds); ok && !dead(other, k.o.Self, !k.heldBefore, k.o.Runs) && k.counts(ctx, other) {
			return &other, nil
		}
		old = holds
	}
}

// counts reports whether the store will end the claim of another, soon after that one has died. So nobody has a label for
// ever who has only written its key. A lease that cannot be read counts.
func (k *Keeper) counts(ctx context.Context, other Holder) bool {
	same := k.other.life == other.Life
	if same && time.Now().Before(k.other.until) {
		return true
	}
	left, err := k.lease.Left(ctx, k.o.Key)
	switch {
	case err != nil:
		k.o.Log.Debug("the lease of another agent cannot be read", "owner", other.String(), "err", err)
		left = k.o.TTL
	case left > longest:
		k.o.Log.Warn("the key names an owner without a lease that ends, which no agent has: it is taken over", "owner", other.String())
		return false
	}
	until := time.Now().Add(left)
	renewed := same && until.After(k.other.until.Add(time.Second)) // a store may end a lease a moment late
	k.followed = other.Life
	k.other = rival{life: other.Life, until: until, lives: renewed || same && k.other.lives || k.heldBefore, warned: same && k.other.warned}
	return true
}

// respect leaves the label to another agent until the end of its lease.
func (k *Keeper) respect(other Holder) {
	taken := &TakenError{Holder: other, Where: "the key " + k.o.Key + " in " + k.o.Store}
	var before *TakenError
	if !errors.As(k.now.Load().why, &before) || before.Holder != other {
		k.setState(taken, nil)
		k.o.Log.Info("another agent has the label, and may be dead: waiting for the end of its lease", "owner", other.String(), "at_most", time.Until(k.other.until))
	}
	if k.other.lives && !k.other.warned {
		k.other.warned = true
		k.o.Log.Warn("another agent has the label in this store: what comes from there is not applied, and nothing is published there", "owner", other.String(),
			"hint", "end one of them, or give it another -microservice-label")
	}
}

// got notes that the label is ours in this store, and ends the back-off.
func (k *Keeper) got() {
	k.retry.Reset()
	k.vague = 0
	if k.heldBefore {
		k.o.Log.Info("the label is held again in this store")
	} else {
		k.o.Log.Debug("the label is held in this store", "ttl", k.lease.TTL())
	}
	k.heldBefore, k.warned, k.other, k.followed = true, false, rival{}, ""
	k.setState(nil, k.lease)
}

// drop ends the lease. Its keys vanish at once, or when the lease expires.
func (k *Keeper) drop(ctx context.Context) {
	lease := k.lease
	k.lease = nil
	if lease == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), closing)
	defer cancel()
	if err := guard.Run(func() error { return lease.Close(ctx) }); err != nil {
		k.o.Log.Debug("a lease is left to its time", "err", err)
	}
}

// settled waits until it is known whether the label is another's. The error is a *TakenError if it is.
func (k *Keeper) settled(ctx context.Context) error {
	for {
		now := k.now.Load()
		switch why := now.reason(); {
		case why == nil:
			return nil
		case !errors.Is(why, ErrUnsettled):
			return why
		}
		k.asked.Set()
		select {
		case <-now.ended:
		case <-ctx.Done():
			return fmt.Errorf("%w: %w", ErrUnsettled, ctx.Err())
		}
	}
}
