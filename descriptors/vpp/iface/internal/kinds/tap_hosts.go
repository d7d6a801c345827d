package kinds

import (
	"errors"
	"fmt"
	"sync"
)

// ErrLinkTaken means that the link of another TAP still has the desired name.
var ErrLinkTaken = errors.New("another TAP has the link")

// TAPHosts records the TAP that was last created with each name of a Linux link. If two
// TAPs with the same name go to different namespaces, the first link must be moved before
// the second TAP is created. VPP would attach the second one to the link of the first. The
// zero value is empty.
type TAPHosts struct {
	mu   sync.Mutex        // guards all fields below
	of   map[string]string // TAP by the name of its link
	busy map[string]bool   // names of links whose TAP is being created
}

// take calls create for a TAP with that link, unless another TAP has the link, according
// to isThere.
func (t *TAPHosts) take(host, tap string, isThere func(host string) bool, create func() error) error {
	other, free := t.begin(host)
	if !free {
		return fmt.Errorf("%s: %w, which is just being made", host, ErrLinkTaken)
	}
	made := false
	defer func() { t.end(host, tap, made) }()
	if other != "" && other != tap && isThere(host) {
		return fmt.Errorf("%s: %w, %s, until that is moved to another namespace", host, ErrLinkTaken, other)
	}
	err := create()
	made = err == nil
	return err
}

// begin marks a link as busy, and returns the TAP that was last created with it. Without
// the mark, two creations at once would both find the link free.
func (t *TAPHosts) begin(host string) (other string, free bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.busy[host] {
		return "", false
	}
	if t.busy == nil {
		t.of, t.busy = map[string]string{}, map[string]bool{}
	}
	t.busy[host] = true
	return t.of[host], true
}

// end removes the mark, and records the TAP if it was created.
func (t *TAPHosts) end(host, tap string, made bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.busy, host)
	if made {
		t.of[host] = tap
	}
}

// Forget removes a deleted TAP, whose link is gone too.
func (t *TAPHosts) Forget(host, tap string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.of[host] == tap {
		delete(t.of, host)
	}
}

// Replace brings the record in line with a dump. Marks of creations stay: these run at the
// same time as the dump.
func (t *TAPHosts) Replace(all []*Found) {
	of := map[string]string{}
	for _, f := range all {
		if f.Meta.TAPHost != "" && f.Details.Tag != "" {
			of[f.Meta.TAPHost] = f.Details.Tag
		}
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.of = of; t.busy == nil {
		t.busy = map[string]bool{}
	}
}
