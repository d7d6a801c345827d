package scheduler_test

import (
	"context"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"

	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/keyplane/keyplane/scheduler"
)

// begunWithIdentities begins a scheduler of things whose keys mean the same in upper and in lower case. A thing with the text
// "x@page" is that which the page of the book names. renamed gets the renamed keys.
func (b *tar) begunWithIdentities(t *testing.T, renamed *[]string) (*scheduler.Scheduler, func()) {
	s := scheduler.New(scheduler.Options{Log: slog.New(slog.DiscardHandler)})
	pages, err := scheduler.Register(s, scheduler.Descriptor[note, string]{
		Name: "book", Prefix: "book/", Referenced: true,
		Create: func(_ context.Context, _ string, m note) (string, error) { return m.GetValue(), nil },
		Delete: func(context.Context, string, note, string) error { return nil },
	})
	must(t, err)
	d := b.descriptor("thing/")
	page := func(m note) string { _, page, _ := strings.Cut(m.GetValue(), "@"); return page }
	d.Identity = func(key string, m note) scheduler.Claim {
		if at, ok := pages.Get(page(m)); ok {
			key = "thing/" + at
		}
		return scheduler.Claim{Resource: strings.ToLower(key), Field: "name", Value: key, Want: "a name of its own"}
	}
	d.Dependencies = func(_ string, m note) []scheduler.Dependency {
		if page(m) == "" {
			return nil
		}
		return []scheduler.Dependency{{Label: "page", Key: "book/" + page(m)}}
	}
	d.Equivalent = func(_ string, old, new note) bool {
		return strings.EqualFold(old.GetValue(), new.GetValue())
	}
	d.Renamed = func(from, to string) { *renamed = append(*renamed, from+" "+to) }
	_, err = scheduler.Register(s, d)
	must(t, err)
	return s, begin(t, s)
}

func TestTwoKeysOfOneThing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var renamed []string
		b := newTar()
		s, stop := b.begunWithIdentities(t, &renamed)
		defer stop()
		const taken = ` (invalid value: name is "thing/A"; expected a name of its own (see thing/a))`
		must(t, declare(t, s, "thing/a", "text"))
		expect(t, "calls", b.took(), "create thing/a")
		_ = declare(t, s, "thing/A", "TEXT") // its key is lower, but the other one has the thing
		expect(t, "states", states(s), "thing/A INVALID"+taken+"; thing/a CONFIGURED text")
		expect(t, "calls for the second key", b.took(), "")
		_, err := s.Commit(t.Context(), scheduler.Txn{Refresh: true})
		must(t, err)
		expect(t, "states after a resync", states(s), "thing/A INVALID"+taken+"; thing/a CONFIGURED text")
		b.took()

		// The second one takes over. In the same transaction it may go back.
		must(t, declare(t, s, "thing/a", ""))
		expect(t, "states", states(s), "thing/A CONFIGURED TEXT")
		must(t, declare(t, s, "thing/a", "text", "thing/A", ""))
		expect(t, "states", states(s), "thing/a CONFIGURED text")
		expect(t, "calls", b.took(), "")
		expect(t, "renamed", strings.Join(renamed, ", "), "thing/a thing/A, thing/A thing/a")

		// One that says something else is made instead.
		_ = declare(t, s, "thing/A", "other")
		must(t, declare(t, s, "thing/a", ""))
		expect(t, "calls", b.took(), "delete thing/a, create thing/A")
		expect(t, "states", states(s), "thing/A CONFIGURED other")
		must(t, declare(t, s, "thing/A", ""))
		expect(t, "calls", b.took(), "delete thing/A")
	})
}

// A plan shows that nothing happens, and changes nothing.
func TestPlanOfTakingOver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var renamed []string
		b := newTar()
		s, stop := b.begunWithIdentities(t, &renamed)
		defer stop()
		must(t, declare(t, s, "thing/a", "text"))
		_ = declare(t, s, "thing/A", "text")
		b.took()
		before := states(s)
		_, err := s.Plan(t.Context(), scheduler.Txn{Changes: []scheduler.Change{scheduler.Unwant("thing/a")}})
		must(t, err)
		expect(t, "states after the plan", states(s), before)
		expect(t, "renamed", strings.Join(renamed, ", "), "")
		must(t, declare(t, s, "thing/a", ""))
		expect(t, "states", states(s), "thing/A CONFIGURED text")
		expect(t, "calls", b.took(), "")
	})
}

// An identity follows what the value refers to.
func TestIdentityOfAReference(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var renamed []string
		b := newTar()
		s, stop := b.begunWithIdentities(t, &renamed)
		defer stop()
		const taken = ` (invalid value: name is "thing/x"; expected a name of its own (see thing/x))`
		must(t, declare(t, s, "thing/x", "text"))
		_ = declare(t, s, "thing/user", "text@page", "book/page", "x")
		expect(t, "states", states(s), "book/page CONFIGURED x; thing/user INVALID"+taken+"; thing/x CONFIGURED text")
		expect(t, "calls", b.took(), "create thing/x")
		_ = declare(t, s, "book/page", "y")
		expect(t, "states", states(s), "book/page CONFIGURED y; thing/user CONFIGURED text@page; thing/x CONFIGURED text")
		_ = declare(t, s, "book/page", "x")
		expect(t, "states", states(s), "book/page CONFIGURED x; thing/user INVALID"+taken+"; thing/x CONFIGURED text")
		must(t, declare(t, s, "thing/x", ""))
		expect(t, "states", states(s), "book/page CONFIGURED x; thing/user CONFIGURED text@page")
	})
}

// A plan leaves no trace: two keys of one thing contest it also if that was planned before.
func TestTwoKeysOfOneThingArePlanned(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var renamed []string
		b := newTar()
		s, stop := b.begunWithIdentities(t, &renamed)
		defer stop()
		must(t, declare(t, s, "thing/a", "text"))
		v, err := s.Value("thing/A", wrapperspb.String("text"))
		must(t, err)
		_, err = s.Plan(t.Context(), scheduler.Txn{Changes: []scheduler.Change{v.Change()}})
		must(t, err)
		_ = declare(t, s, "thing/A", "text")
		expect(t, "calls", b.took(), "create thing/a")
		must(t, declare(t, s, "thing/a", ""))
		expect(t, "calls for the heir", b.took(), "")
		expect(t, "renamed", strings.Join(renamed, ", "), "thing/a thing/A")
	})
}
