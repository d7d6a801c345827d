package kvdbsync_test

import (
	"context"
	"fmt"
	"maps"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"github.com/keyplane/keyplane/kvdbsync"
	"github.com/keyplane/keyplane/kvdbsync/conformance"
)

// TestTheConsumerEndsAsTheStore plays random histories: transactions, lost
// changes, cut lines, slow consumers. Each transaction writes its number under
// both keys of a pair, so a torn one shows.
func TestTheConsumerEndsAsTheStore(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		synctest.Test(t, func(t *testing.T) { playHistory(t, rt) })
	})
}

func playHistory(t *testing.T, rt *rapid.T) {
	var m conformance.Memory
	s := kvdbsync.NewSource(kvdbsync.Options{Name: "mem", Connector: &m})
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- s.Run(ctx) }()
	defer func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	}()

	store, has := map[string]string{}, map[string]string{}
	take := func() {
		c, ok := s.Take()
		for _, e := range c.Events {
			before, had := has[e.Key]
			if e.Value == nil && !had || had && before == string(e.Value) && e.Value != nil {
				rt.Fatalf("%s: %q is no news to the consumer", e.Key, e.Value)
			}
			if e.Value == nil {
				delete(has, e.Key)
			} else {
				has[e.Key] = string(e.Value)
			}
		}
		if ok && !c.Synced {
			rt.Fatal("a change before the first sync")
		}
		for pair := range 3 {
			if one, two := has[fmt.Sprint(pair, "/one")], has[fmt.Sprint(pair, "/two")]; one != two {
				rt.Fatalf("transaction torn: %q and %q", one, two)
			}
		}
	}
	change := func(how func(...kvdbsync.Event), number int) {
		pair := rapid.IntRange(0, 2).Draw(rt, "pair")
		value := []byte(fmt.Sprint(number % 4)) // so that values come back
		if rapid.IntRange(0, 3).Draw(rt, "delete") == 0 {
			value = nil
		}
		var events []kvdbsync.Event
		for _, name := range []string{"/one", "/two"} {
			key := fmt.Sprint(pair, name)
			events = append(events, kvdbsync.Event{Key: key, Value: value})
			store[key] = string(value)
			if value == nil {
				delete(store, key)
			}
		}
		how(events...)
	}
	for i := range rapid.IntRange(1, 60).Draw(rt, "steps") {
		switch rapid.IntRange(0, 9).Draw(rt, "what") {
		default:
			change(m.Txn, i)
		case 4:
			change(m.Lose, i)
		case 5:
			m.Fail(errDown)
		case 6:
			m.Fail(nil)
		case 7:
			elapse(time.Duration(rapid.IntRange(1, 2000).Draw(rt, "seconds")) * time.Second)
		case 8, 9:
			synctest.Wait()
			take()
		}
	}
	m.Fail(nil)
	elapse(15 * time.Minute)
	synctest.Wait()
	take()
	if !maps.Equal(has, store) {
		rt.Fatalf("the consumer has %v, the store %v", has, store)
	}
}
