package orchestrator

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/keyplane/keyplane/scheduler"
)

// A Claim is what one source has under a key.
type Claim struct {
	Key      string
	Source   string
	Priority int
	Wins     bool  // its value is the one that counts
	Err      error // why the newest value is refused; nil: it is valid
	HasValid bool  // a value that was valid; with Err, an earlier one
	// Remembered says that an earlier run has left it, and that the source has not
	// said otherwise yet.
	Remembered bool
	// Doubted says that the key is missing from the source but may not have been
	// deleted, and that a listing after the grace time decides.
	Doubted bool
}

// State is the claim in a word: valid, refused or unimplemented.
func (c Claim) State() string {
	switch {
	case c.Err == nil:
		return "valid"
	case errors.Is(c.Err, scheduler.ErrUnimplemented):
		return "unimplemented"
	}
	return "refused"
}

// ErrStopped is what Claims returns once Run has ended.
var ErrStopped = errors.New("the orchestrator has stopped")

// Claims returns what sources have under key, the highest first. Run's goroutine
// answers, between changes.
func (o *Orchestrator) Claims(ctx context.Context, key string) ([]Claim, error) {
	return o.ask(ctx, func() []Claim { return o.claims(key) })
}

// ClaimsBelow is Claims for all keys with the prefix, sorted by key.
func (o *Orchestrator) ClaimsBelow(ctx context.Context, prefix string) ([]Claim, error) {
	return o.ask(ctx, func() (out []Claim) {
		seen := map[string]bool{}
		for _, l := range o.layers {
			for key := range l.entries {
				if strings.HasPrefix(key, prefix) && !seen[key] {
					seen[key] = true
					out = append(out, o.claims(key)...)
				}
			}
		}
		slices.SortStableFunc(out, func(a, b Claim) int { return cmp.Compare(a.Key, b.Key) })
		return out
	})
}

func (o *Orchestrator) claims(key string) (out []Claim) {
	decided := false
	for _, l := range o.layers {
		e := l.entries[key]
		if e == nil {
			continue
		}
		past := l.past[key]
		out = append(out, Claim{
			Key: key, Source: l.Name, Priority: l.Priority,
			Wins: !decided && e.valid != nil, Err: e.err, HasValid: e.valid != nil,
			Remembered: past != nil && past.entry == e, Doubted: l.isDoubted(key),
		})
		decided = decided || e.valid != nil
	}
	return out
}

// ask has Run's goroutine answer.
func (o *Orchestrator) ask(ctx context.Context, question func() []Claim) (answer []Claim, err error) {
	done := make(chan struct{})
	select {
	case o.asked <- func() { answer = question(); close(done) }:
		<-done
		return answer, nil
	case <-o.stopped:
		return nil, ErrStopped
	case <-ctx.Done():
		return nil, fmt.Errorf("waiting for the end of a transaction: %w", ctx.Err())
	}
}
