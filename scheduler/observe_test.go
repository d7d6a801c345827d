package scheduler_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"google.golang.org/protobuf/types/known/emptypb"

	"github.com/keyplane/keyplane/models"
	"github.com/keyplane/keyplane/proto/ligato/linux/interfaces"
	"github.com/keyplane/keyplane/scheduler"
	"github.com/keyplane/keyplane/scheduler/explain"
)

// A numbering gives the first interface number 7, and notes the numbers that verbs are given.
type numbering struct {
	given  []string
	stands *interfaces.Interface // what Retrieve yields, with number 9
}

func (n *numbering) register(t *testing.T, s *scheduler.Scheduler) *scheduler.Index[int] {
	t.Helper()
	index, err := scheduler.Register(s, scheduler.Descriptor[*interfaces.Interface, int]{
		Name: "interface", Model: models.For[*interfaces.Interface](),
		Create: func(context.Context, string, *interfaces.Interface) (int, error) { return 7, nil },
		Update: func(_ context.Context, _ string, _, _ *interfaces.Interface, m int) (int, error) {
			n.given = append(n.given, fmt.Sprint("update ", m))
			return m, nil
		},
		Delete: func(_ context.Context, _ string, _ *interfaces.Interface, m int) error {
			n.given = append(n.given, fmt.Sprint("delete ", m))
			return nil
		},
		Retrieve: func(context.Context, []scheduler.Desired[*interfaces.Interface]) scheduler.Retrieved[*interfaces.Interface, int] {
			return func(yield func(scheduler.Found[*interfaces.Interface, int], error) bool) {
				if n.stands != nil {
					yield(scheduler.Found[*interfaces.Interface, int]{Value: n.stands, Meta: 9}, nil)
				}
			}
		},
	})
	must(t, err)
	return index
}

// TestObservedKeepsMetadata observes values of our own, with and without metadata.
func TestObservedKeepsMetadata(t *testing.T) {
	changed := &interfaces.Interface{Name: "if0", Type: interfaces.Interface_DUMMY, Mtu: 1300}
	for name, c := range map[string]struct {
		seen  []scheduler.Observed
		given string
		index int
	}{
		"changed":             {[]scheduler.Observed{{Value: changed}}, "[update 7 delete 7]", 7},
		"changed, renumbered": {[]scheduler.Observed{{Value: changed, Meta: 8}}, "[update 8 delete 8]", 8},
		"renumbered":          {[]scheduler.Observed{{Meta: 8}}, "[delete 8]", 8},
		"gone and back":       {[]scheduler.Observed{{Value: nil}, {Value: changed}}, "[update 7 delete 7]", 7},
		"wrong metadata":      {[]scheduler.Observed{{Value: changed, Meta: "8"}}, "[delete 7]", 7},
		"wrong type":          {[]scheduler.Observed{{Value: nil}, {Value: nil}}, "[delete 7]", 7},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				log := &bytes.Buffer{}
				s := scheduler.New(scheduler.Options{Log: slog.New(slog.NewTextHandler(log, nil))})
				n := &numbering{}
				index := n.register(t, s)
				defer begin(t, s)()
				one := interfacesNamed(t, s, 1)
				mustCommit(t, s, scheduler.Txn{Changes: one})
				for _, o := range c.seen {
					o.Key = one[0].Key
					if name == "renumbered" {
						o.Value = one[0].Value.Message()
					}
					if name == "wrong type" {
						o.Value = &emptypb.Empty{}
					}
					s.Observe(o)
					synctest.Wait()
				}
				st, _ := s.Status(one[0].Key)
				if m, _ := index.Get("if0"); m != c.index || st == nil || st.Meta != c.index {
					t.Errorf("the index has %v, the status %v; want %d", m, st, c.index)
				}
				mustCommit(t, s, scheduler.Txn{Changes: []scheduler.Change{scheduler.Unwant(one[0].Key)}})
				if got := fmt.Sprint(n.given); got != c.given {
					t.Errorf("verbs were given %s, want %s", got, c.given)
				}
				if wrong := strings.HasPrefix(name, "wrong"); wrong != strings.Contains(log.String(), "level=ERROR") {
					t.Errorf("logged is %q", log)
				}
			})
		})
	}
}

// TestObservedWithoutMetadataIsReadBack observes a value of our own where nothing stood: what
// stands is asked for, with its metadata.
func TestObservedWithoutMetadataIsReadBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := scheduler.New(scheduler.Options{})
		n := &numbering{}
		n.register(t, s)
		defer begin(t, s)()
		mustCommit(t, s, scheduler.Txn{Replace: true})
		n.stands = &interfaces.Interface{Name: "if0"}
		s.Observe(scheduler.Observed{Key: key("if0"), Value: n.stands})
		synctest.Wait()
		if got := fmt.Sprint(n.given); got != "[delete 9]" { // nobody wants it
			t.Errorf("verbs were given %s, want [delete 9]", got)
		}
	})
}

// layered registers values that need what deps says.
func layered(t *testing.T, s *scheduler.Scheduler, deps func(name string) []scheduler.Dependency) {
	t.Helper()
	_, err := scheduler.Register(s, scheduler.Descriptor[*emptypb.Empty, struct{}]{
		Name: "layer", Prefix: "layer/",
		Create: func(context.Context, string, *emptypb.Empty) (struct{}, error) { return struct{}{}, nil },
		Delete: func(context.Context, string, *emptypb.Empty, struct{}) error { return nil },
		Dependencies: func(key string, _ *emptypb.Empty) []scheduler.Dependency {
			return deps(strings.TrimPrefix(key, "layer/"))
		},
	})
	must(t, err)
}

// TestDependencyOnAnyKey: one with Match alone is met by whatever it accepts.
func TestDependencyOnAnyKey(t *testing.T) {
	s := scheduler.New(scheduler.Options{})
	plain(t, s, func(string) error { return nil })
	layered(t, s, func(string) []scheduler.Dependency {
		return []scheduler.Dependency{{Label: "any-one", Match: func(key string) bool { return strings.HasSuffix(key, "1") }}}
	})
	defer begin(t, s)()
	v, err := s.Value("layer/a", &emptypb.Empty{})
	must(t, err)
	two := interfacesNamed(t, s, 2) // if0, if1
	state := func(want string) {
		t.Helper()
		if st, _ := s.Status("layer/a"); st.State.String() != want {
			t.Errorf("it is %s, want %s", st.State, want)
		}
	}
	mustCommit(t, s, scheduler.Txn{Changes: []scheduler.Change{v.Change(), two[0]}})
	state("PENDING")
	if text := explain.Key(s, "layer/a").String(); !strings.Contains(text, "any-one: needs any value with a key that it accepts") {
		t.Errorf("explained is %q", text)
	}
	mustCommit(t, s, scheduler.Txn{Changes: two[1:]})
	state("CONFIGURED")
	mustCommit(t, s, scheduler.Txn{Changes: []scheduler.Change{scheduler.Unwant(two[1].Key)}})
	state("PENDING")
}

// TestDependencyOnNothing: one that does not say what meets it makes the value invalid.
func TestDependencyOnNothing(t *testing.T) {
	s := scheduler.New(scheduler.Options{})
	layered(t, s, func(name string) []scheduler.Dependency {
		if name == "both" {
			return []scheduler.Dependency{{Label: "odd", Key: "k", Prefixes: []string{"p/"}}}
		}
		if name == "keys" {
			return []scheduler.Dependency{{Label: "odd", Keys: []string{"k"}, Prefixes: []string{"p/"}}}
		}
		return []scheduler.Dependency{{Label: "odd"}}
	})
	for name, want := range map[string]string{
		"nothing": `dependency "odd" has none of Key, Keys, Prefixes and Match`,
		"both":    `dependency "odd" has Key "k" and also Keys, Prefixes or Match`,
		"keys":    `dependency "odd" has Keys ["k"] and also Prefixes or Match`,
	} {
		if _, err := s.Value("layer/"+name, &emptypb.Empty{}); !errors.Is(err, scheduler.ErrInvalid) || !strings.Contains(err.Error(), want) {
			t.Errorf("Value returns %v, want %q", err, want)
		}
	}
}

// TestAnyOfSeveralKeys has a value that any of two keys meets: it moves from one to the other
// without an operation, and a third key under the same prefix does not meet it.
func TestAnyOfSeveralKeys(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := scheduler.New(scheduler.Options{})
		layered(t, s, func(name string) []scheduler.Dependency {
			if name != "user" {
				return nil
			}
			return []scheduler.Dependency{{Label: "a-or-b", Keys: []string{"layer/a", "layer/b"}}}
		})
		defer begin(t, s)()
		put := func(name string) scheduler.Change {
			v, err := s.Value("layer/"+name, &emptypb.Empty{})
			must(t, err)
			return v.Change()
		}
		expect := func(want scheduler.State) {
			t.Helper()
			if st, _ := s.Status("layer/user"); st.State != want {
				t.Errorf("the user is %v %q, want %v", st.State, st.Details, want)
			}
		}
		mustCommit(t, s, scheduler.Txn{Changes: []scheduler.Change{put("user"), put("a2"), put("a/b")}})
		expect(scheduler.Pending)
		st, _ := s.Status("layer/user")
		if len(st.Waits) != 1 || !slices.Equal(st.Waits[0].Keys, []string{"layer/a", "layer/b"}) {
			t.Errorf("it waits for %+v", st.Waits)
		}
		mustCommit(t, s, scheduler.Txn{Changes: []scheduler.Change{put("b")}})
		expect(scheduler.Configured)
		mustCommit(t, s, scheduler.Txn{Changes: []scheduler.Change{put("a")}})
		rec := mustCommit(t, s, scheduler.Txn{Changes: []scheduler.Change{scheduler.Unwant("layer/b")}})
		expect(scheduler.Configured)
		for _, op := range rec.Executed.All() {
			if op.Key == "layer/user" {
				t.Errorf("the move from b to a has the operation %v", op.Verb)
			}
		}
		mustCommit(t, s, scheduler.Txn{Changes: []scheduler.Change{scheduler.Unwant("layer/a")}})
		expect(scheduler.Pending)
	})
}

// TestObservedBeforeTheEndOfAVerb observes, while a verb of a value runs, that the value is gone: it may have been so before
// the verb took effect. So it is read back.
func TestObservedBeforeTheEndOfAVerb(t *testing.T) {
	for name, c := range map[string]struct {
		vanish bool // after the verb
		calls  string
	}{
		"the report is older than the verb": {false, "create thing/a, retrieve thing/"},
		"the report is newer":               {true, "create thing/a, retrieve thing/, create thing/a"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newTar()
				s, stop := b.begin(t, scheduler.Options{})
				defer stop()
				mustCommit(t, s, scheduler.Txn{Replace: true})
				b.took()
				b.hang("create thing/a")
				go func() { _ = declare(t, s, "thing/a", "one") }()
				synctest.Wait()
				s.Observe(scheduler.Observed{Key: "thing/a"})
				b.hang("retrieve thing/")
				b.release("create thing/a", nil)
				if c.vanish {
					b.mu.Lock()
					delete(b.stands, "thing/a")
					b.mu.Unlock()
				}
				b.release("retrieve thing/", nil)
				expect(t, "calls", b.took(), c.calls)
				expect(t, "states", states(s), "thing/a CONFIGURED one")
			})
		})
	}
}
