package scheduler_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/keyplane/keyplane/scheduler"
)

// A value that was created stays while the Create of its partner is abandoned. Each of them
// depends on the other, so it was created on the assumption that the other one follows. That
// is what happens in the end.
func TestPartnerOfAbandonedCreateStays(t *testing.T) {
	for _, late := range []string{"thing/a", "thing/b"} {
		synctest.Test(t, func(t *testing.T) {
			b := newTar()
			b.hang("create " + late)
			s, stop := b.begin(t, scheduler.Options{})
			defer stop()
			_ = declare(t, s, "thing/a", "1>thing/b", "thing/b", "1>thing/a", "other/a", "1>thing/a", "other/b", "1>thing/b")
			if st, _ := s.Status(late); !errors.Is(st.Err, scheduler.ErrNoAnswer) {
				t.Errorf("%s is %v: %v", late, st.State, st.Err)
			}
			b.release("create "+late, nil)
			expect(t, "the state", states(s), "other/a CONFIGURED 1>thing/a; other/b CONFIGURED 1>thing/b; thing/a CONFIGURED 1>thing/b; thing/b CONFIGURED 1>thing/a")
			if calls := b.took(); strings.Count(calls, "create") != 4 || strings.Contains(calls, "delete") {
				t.Errorf("the calls are %s", calls)
			}
		})
	}
}

// The partner leaves if the abandoned Create fails late, if its connection is lost, or if
// somebody no longer wants the value.
func TestPartnerOfFailedCreateLeaves(t *testing.T) {
	for name, end := range map[string]func(*testing.T, *tar, *scheduler.Scheduler){
		"it fails": func(_ *testing.T, b *tar, _ *scheduler.Scheduler) { b.release("create thing/a", errors.New("too bad")) },
		"it is not wanted": func(t *testing.T, b *tar, s *scheduler.Scheduler) {
			_ = declare(t, s, "thing/a", "")
			b.release("create thing/a", nil)
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newTar()
				b.hang("create thing/a")
				s, stop := b.begin(t, scheduler.Options{})
				defer stop()
				_ = declare(t, s, "thing/a", "1>thing/b", "thing/b", "1>thing/a", "other/b", "1>thing/b")
				st, _ := s.Status("other/b")
				if st.State != configured {
					t.Errorf("what depends on thing/b is %v", st.State)
				}
				end(t, b, s)
				for _, key := range []string{"thing/b", "other/b"} {
					if st, _ := s.Status(key); st.State != scheduler.Pending {
						t.Errorf("%s is %v: %v", key, st.State, st.Err)
					}
				}
				if len(b.stands) > 0 {
					t.Errorf("there still is %v", b.stands)
				}
			})
		})
	}
}

// Values whose verbs always outlive the timeout come to rest, with one verb for each change.
func TestVerbsThatAlwaysOutliveTheTimeout(t *testing.T) {
	for name, values := range map[string][]string{
		"alone":            {"thing/a", "1"},
		"one on the other": {"thing/a", "1", "thing/b", "1>thing/a", "other/c", "1>thing/b"},
		"each other":       {"thing/a", "1>thing/b", "thing/b", "1>thing/a", "other/c", "1>thing/a"},
		"a ring":           {"thing/a", "1>thing/b", "thing/b", "1>thing/c", "thing/c", "1>thing/a", "other/c", "1>thing/a"},
		"many pairs":       pairs(40), // more than may hang before the descriptor is stalled
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newTar()
				b.slow = 5 * time.Second
				s, stop := b.begin(t, scheduler.Options{VerbTimeout: 2 * time.Second})
				defer stop()
				change := func(verb, text string) {
					var to []string
					for i := 0; i < len(values); i += 2 {
						if text == "" {
							to = append(to, values[i], "")
							continue
						}
						to = append(to, values[i], strings.Replace(values[i+1], "1", text, 1))
					}
					_ = declare(t, s, to...)
					<-time.After(time.Hour)
					verbs := map[string]int{}
					for call := range strings.SplitSeq(b.took(), ", ") {
						call, _, _ = strings.Cut(call, " ")
						verbs[call]++
					}
					delete(verbs, "retrieve")
					if want := map[string]int{verb: len(values) / 2}; !maps.Equal(verbs, want) {
						t.Errorf("the verbs are %v, want %v", verbs, want)
					}
				}
				configuredAll := func() {
					for _, st := range s.Statuses("") {
						if st.State != configured {
							t.Errorf("%s is %v: %v", st.Key, st.State, st.Err)
						}
					}
				}
				change("create", "1")
				configuredAll()
				change("update", "2")
				configuredAll()
				change("delete", "")
				if left := s.Statuses(""); len(left) > 0 || len(b.stands) > 0 {
					t.Errorf("there still is %s, of which the southbound has %v", states(s), b.stands)
				}
			})
		})
	}
}

// pairs are values of which each two depend on each other.
func pairs(n int) (out []string) {
	for i := range n {
		a, b := fmt.Sprintf("thing/%02d", i), fmt.Sprintf("thing/%02dp", i)
		out = append(out, a, "1>"+b, b, "1>"+a)
	}
	return out
}

// TestPartOfCycleFailsBeforeItsBaseLeaves has a part fail in a cycle. Its base leaves before the retry, and
// comes back after the failure is mended.
func TestPartOfCycleFailsBeforeItsBaseLeaves(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newTar()
		s := scheduler.New(scheduler.Options{Log: slog.New(slog.DiscardHandler)})
		broken := true
		base, part := b.descriptor("base/"), b.descriptor("part/")
		base.Derived = func(string, note) []scheduler.KeyValue {
			return []scheduler.KeyValue{{Key: "part/k", Value: wrapperspb.String("1>thing/m")}}
		}
		create := part.Create
		part.Create = func(ctx context.Context, key string, m note) (struct{}, error) {
			if broken {
				return struct{}{}, errors.New("broken")
			}
			return create(ctx, key, m)
		}
		for _, d := range []scheduler.Descriptor[note, struct{}]{base, part, b.descriptor("thing/"), b.descriptor("other/")} {
			_, err := scheduler.Register(s, d)
			must(t, err)
		}
		defer begin(t, s)()
		_ = declare(t, s, "other/d", "1", "base/b", "1>other/d", "thing/m", "1>part/k")
		if st, _ := s.Status("part/k"); st.State != retrying {
			t.Fatalf("the part is %v, want RETRYING", st.State)
		}
		_ = declare(t, s, "other/d", "")
		broken = false
		_ = declare(t, s, "other/d", "1")
		<-time.After(time.Minute)
		expect(t, "the state", states(s), "base/b CONFIGURED 1>other/d; other/d CONFIGURED 1; part/k CONFIGURED 1>thing/m; thing/m CONFIGURED 1>part/k")
	})
}
