package kinds

import (
	"errors"
	"fmt"
	"sync"
)

// ErrLinkTaken says that the link of another TAP still has the name that one is to have.
var ErrLinkTaken = errors.New("another TAP has the link")

// tapHosts are which TAPs were made last with a name of Linux. Of two that go to different
// namespaces the first has to be moved before the second is made: VPP would attach that to the
// link of the first. The zero value knows none.
type TAPHosts struct {
	mu   sync.Mutex        // guards what follows
	of   map[string]string // the TAP, by the name of its link
	busy map[string]bool   // the names of links with which one is being made
}

// take has a TAP be made with that link, unless another has it, as isThere tells.
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

func (t *TAPHosts) end(host, tap string, made bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.busy, host)
	if made {
		t.of[host] = tap
	}
}

// forget forgets a TAP that is gone, and its link with it.
func (t *TAPHosts) Forget(host, tap string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.of[host] == tap {
		delete(t.of, host)
	}
}

// seen replaces what is known by what VPP has.
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
