package scheduler_test

import (
	"context"
	"log/slog"
	"testing"
	"testing/synctest"

	"github.com/keyplane/keyplane/scheduler"
)

// A value needs a thing that a page of the book names. The page comes after the thing, names another one, and the first again.
func TestMatchOfAReference(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newTar()
		s := scheduler.New(scheduler.Options{Log: slog.New(slog.DiscardHandler)})
		pages, err := scheduler.Register(s, scheduler.Descriptor[note, string]{
			Name: "book", Prefix: "book/", Referenced: true,
			Create: func(_ context.Context, _ string, m note) (string, error) { return m.GetValue(), nil },
			Delete: func(context.Context, string, note, string) error { return nil },
		})
		must(t, err)
		_, err = scheduler.Register(s, b.descriptor("thing/"))
		must(t, err)
		user := b.descriptor("user/")
		user.Dependencies = func(_ string, m note) []scheduler.Dependency {
			return []scheduler.Dependency{
				{Label: "page", Key: "book/" + m.GetValue()},
				{Label: "thing", Prefixes: []string{"thing/"}, Match: func(key string) bool {
					at, ok := pages.Get(m.GetValue())
					return ok && key == "thing/"+at
				}},
			}
		}
		_, err = scheduler.Register(s, user)
		must(t, err)
		defer begin(t, s)()

		must(t, declare(t, s, "thing/a", "x", "user/1", "page"))
		expect(t, "states without the page", states(s), "thing/a CONFIGURED x; user/1 PENDING")
		must(t, declare(t, s, "book/page", "a"))
		expect(t, "states with the page", states(s), "book/page CONFIGURED a; thing/a CONFIGURED x; user/1 CONFIGURED page")
		must(t, declare(t, s, "book/page", "b"))
		expect(t, "states with another page", states(s), "book/page CONFIGURED b; thing/a CONFIGURED x; user/1 PENDING")
		must(t, declare(t, s, "thing/b", "y"))
		expect(t, "states with its thing", states(s), "book/page CONFIGURED b; thing/a CONFIGURED x; thing/b CONFIGURED y; user/1 CONFIGURED page")
		must(t, declare(t, s, "thing/b", ""))
		must(t, declare(t, s, "book/page", "a"))
		expect(t, "states with the first page", states(s), "book/page CONFIGURED a; thing/a CONFIGURED x; user/1 CONFIGURED page")
		must(t, declare(t, s, "book/page", ""))
		expect(t, "states after the page", states(s), "thing/a CONFIGURED x; user/1 PENDING")
	})
}
