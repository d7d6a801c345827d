package orchestrator_test

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/keyplane/keyplane/kvdbsync"
)

// many is "if1=TEXT if2=TEXT ...", from the first to the last.
func many(first, last int, text string) string {
	var out []string
	for i := first; i <= last; i++ {
		out = append(out, fmt.Sprintf("if%d=%s", i, text))
	}
	return strings.Join(out, " ")
}

// listedAt is a listing that began some time ago.
func listedAt(text string, ago time.Duration) kvdbsync.Change {
	c := listed(text)
	c.Listing.Began = time.Now().Add(-ago)
	return c
}

// told is what a watch tells.
func published(text string) kvdbsync.Change { return kvdbsync.Change{Events: events(text)} }

// distrusting is a listing or an event that is not to be believed, whatever its size.
func distrusting(c kvdbsync.Change, why error) kvdbsync.Change {
	c.Distrust = why
	return c
}

// etcd gives changes to the only source, and compares what stands.
type etcdRig struct {
	*testing.T
	*rig
}

// etcdOf runs a test with one source that has six items, if1 to if6.
func etcdOf(t *testing.T, f func(etcdRig)) {
	bubble(t, map[string]int{"etcd": 1}, "", func(t *testing.T, r *rig) {
		r.give("etcd", listed(many(1, 6, "1")))
		f(etcdRig{t, r})
	})
}

// gives hands a change to the source; want is what stands then.
func (r etcdRig) gives(c kvdbsync.Change, want string) {
	r.Helper()
	r.give("etcd", c)
	if got := r.standing(); got != want {
		r.Errorf("stands %q, want %q", got, want)
	}
}

// waits lets time pass; want is what stands then.
func (r etcdRig) waits(d time.Duration, want string) {
	r.Helper()
	<-time.After(d)
	synctest.Wait()
	if got := r.standing(); got != want {
		r.Errorf("after %v stands %q, want %q", d, got, want)
	}
}

// doubts compares the number of keys in doubt and of the listings asked for.
func (r etcdRig) doubts(keys, listings int) {
	r.Helper()
	if got := r.orch.Health()[0].Doubted; got != keys {
		r.Errorf("%d keys are in doubt, want %d", got, keys)
	}
	if got := int(r.inputs["etcd"].relists.Load()); got != listings {
		r.Errorf("%d listings were asked for, want %d", got, listings)
	}
}

// A store comes back empty, and its connection breaks again: each listing shows nothing.
func TestOnlyAListingThatBeginsAfterTheDeadlineDecides(t *testing.T) {
	etcdOf(t, func(r etcdRig) {
		all := many(1, 6, "1")
		r.gives(listed(many(1, 6, "?")), all)
		r.doubts(6, 0)
		r.waits(1500*time.Millisecond, all)
		r.gives(listed(""), all)
		r.waits(8499*time.Millisecond, all)
		r.doubts(6, 0)
		r.waits(time.Millisecond, all) // ten seconds
		r.doubts(6, 1)
		r.gives(listedAt("", time.Second), all) // it began before, and is complete only now
		r.waits(9*time.Second, all)
		r.doubts(6, 1)
		r.waits(time.Second, all) // the listing that was asked for has failed
		r.doubts(6, 2)
		r.waits(time.Hour, all) // the connection is away
		r.gives(listed(""), "")
		before := int(r.inputs["etcd"].relists.Load())
		r.waits(time.Hour, "")
		r.doubts(0, before)
	})
}

func TestADoubtEndsWithItsDeadline(t *testing.T) {
	etcdOf(t, func(r etcdRig) {
		all := many(1, 6, "1")
		r.gives(listed(many(1, 6, "?")), all)
		r.waits(5*time.Second, all)
		r.gives(published(all), all)
		r.doubts(0, 0)
		r.waits(3*time.Second, all)
		r.gives(listed(many(1, 6, "?")), all) // a doubt of its own, which ends after 18 s
		r.waits(9*time.Second, all)
		r.doubts(6, 0)
		r.waits(time.Second, all)
		r.doubts(6, 1)
	})
}

// A store is emptied, and listed when one of six keys is back.
func TestKeysThatReturnAreNotTouched(t *testing.T) {
	etcdOf(t, func(r etcdRig) {
		all, verbs := many(1, 6, "1"), r.verbs
		r.gives(listed(many(2, 6, "?")), all)
		for i := 2; i <= 5; i++ {
			r.gives(published(many(i, i, "1")), all)
			r.doubts(6-i, 0)
			r.waits(time.Second, all)
		}
		if r.verbs != verbs {
			r.Errorf("%d operations, want none", r.verbs-verbs)
		}
		r.waits(6*time.Second, all)
		r.doubts(1, 1)
		r.gives(listed(""), many(1, 5, "1"))
		if r.verbs != verbs+1 {
			r.Errorf("%d operations, want one", r.verbs-verbs)
		}
	})
}

func TestWhichRemovalsWait(t *testing.T) {
	for _, c := range []struct {
		what  string
		had   int
		comes kvdbsync.Change
		waits bool
	}{
		{"all", 6, listed(many(1, 6, "?")), true},
		{"all of a few", 2, listed(many(1, 2, "?")), true},
		{"the only one", 1, listed(many(1, 1, "?")), true},
		{"the only one, while there is another", 1, listed("if1=? if2=2"), false},
		{"a third", 15, listed(many(1, 5, "?")), true},
		{"less than a third", 16, listed(many(1, 5, "?")), false},
		{"most, but only a few", 5, listed(many(1, 4, "?")), false},
		{"most, but others come", 6, listed(many(1, 5, "?") + " " + many(7, 30, "1")), true},
		{"one, of another store", 16, distrusting(listed("if1=?"), kvdbsync.ErrOtherStore), true},
		{"one, of an older revision", 16, distrusting(listed("if1=?"), kvdbsync.ErrWentBack), true},
		{"one that was evicted", 16, distrusting(published("if1=?"), kvdbsync.ErrLostKeys), true},
		{"one that was deleted, of another store", 16, distrusting(listed("if1="), kvdbsync.ErrOtherStore), false},
		{"all, by deletes", 16, published(many(1, 16, "")), false},
		{"nothing, of another store", 16, distrusting(listed(""), kvdbsync.ErrOtherStore), false},
	} {
		t.Run(c.what, func(t *testing.T) {
			bubble(t, map[string]int{"etcd": 1}, "", func(t *testing.T, r *rig) {
				r.give("etcd", listed(many(1, c.had, "1")))
				r.give("etcd", c.comes)
				stays, doubted := 0, r.orch.Health()[0].Doubted
				for _, e := range c.comes.Events {
					name := e.Key[strings.LastIndex(e.Key, "/")+1:]
					if e.Value == nil && strings.Contains(" "+r.standing(), " "+name+"=") {
						stays++
					}
				}
				if (stays > 0) != c.waits || stays != doubted {
					t.Errorf("%d removals wait, and %d keys are in doubt; some should: %v", stays, doubted, c.waits)
				}
			})
		})
	}
}

func TestWhatAListingChangesIsAppliedAtOnce(t *testing.T) {
	etcdOf(t, func(r etcdRig) {
		r.gives(listed("if1=7 if7=1 "+many(2, 6, "?")), "if1=7 "+many(2, 6, "1")+" if7=1")
		r.gives(published("if2="), "if1=7 "+many(3, 6, "1")+" if7=1") // somebody deletes what is in doubt
		r.gives(published("if3=3"), "if1=7 if3=3 "+many(4, 6, "1")+" if7=1")
		r.doubts(3, 0)
		r.waits(10*time.Second, "if1=7 if3=3 "+many(4, 6, "1")+" if7=1")
		r.gives(listed(""), "if1=7 if3=3 if7=1")
	})
}

// Keys that go missing while others are in doubt have a deadline of their own, the grace
// time after the first: so each has the grace time, and one listing serves many.
func TestASecondDoubt(t *testing.T) {
	etcdOf(t, func(r etcdRig) {
		all := many(1, 6, "1")
		evicted := func(name string) kvdbsync.Change { return distrusting(published(name+"=?"), kvdbsync.ErrLostKeys) }
		r.gives(evicted("if1"), all)
		r.waits(time.Second, all)
		r.gives(evicted("if2"), all)
		r.waits(8*time.Second, all)
		r.gives(listed("if3=?"), all) // which would be obeyed otherwise
		r.waits(time.Second, all)
		r.doubts(3, 1)
		r.gives(listed(""), many(2, 6, "1"))
		r.waits(time.Second, many(2, 6, "1"))
		r.gives(evicted("if4"), many(2, 6, "1")) // after 11 s, until 30 s
		r.waits(8*time.Second, many(2, 6, "1"))
		r.doubts(3, 1)
		r.waits(time.Second, many(2, 6, "1"))
		r.doubts(3, 2)
		r.gives(listed(""), many(4, 6, "1"))
		r.waits(10*time.Second, many(4, 6, "1"))
		r.gives(listed(""), many(5, 6, "1"))
		r.doubts(0, 3)
	})
}

// A restart is a gap like any other: what the first listing lacks is compared with what
// is remembered.
func TestADoubtAfterARestart(t *testing.T) {
	first := listed(many(1, 6, "1"))
	first.Listing.Identity, first.Listing.Rev = "one", 50
	again := func(text string, rev int64, identity string) kvdbsync.Change {
		c := listed(text)
		c.Listing.Rev, c.Listing.Identity = rev, identity
		return c
	}
	five, all := many(1, 5, "1"), many(1, 6, "1")
	for _, c := range []struct {
		what  string
		first kvdbsync.Change // of the second life
		waits string
		doubt int
	}{
		{"nothing changed", again(all, 50, "one"), all, 0},
		{"a key was deleted", again(five, 51, "one"), five, 0},
		{"another store", again(five, 51, "two"), all, 1},
		{"an older revision", again(five, 49, "one"), all, 1},
		{"a store that is being filled", again("if1=2", 51, "one"), "if1=2 " + many(2, 6, "1"), 5},
		{"an empty store", again("", 51, "one"), all, 6},
	} {
		for _, late := range []bool{false, true} {
			t.Run(fmt.Sprint(c.what, ", late: ", late), func(t *testing.T) {
				memory, layers := newNotebook(), map[string]int{"etcd": 1}
				life(t, layers, "", memory, func(_ *testing.T, r *rig) { r.give("etcd", first) })
				live := func(t *testing.T, r *rig) etcdRig {
					if late {
						<-time.After(5 * time.Second)
						synctest.Wait()
					}
					e := etcdRig{t, r}
					e.gives(c.first, c.waits)
					e.doubts(c.doubt, 0)
					return e
				}
				// A life that ends with keys in doubt leaves them to the next one.
				life(t, layers, all, memory, func(t *testing.T, r *rig) { live(t, r) })
				life(t, layers, all, memory, func(t *testing.T, r *rig) {
					e := live(t, r)
					e.waits(10*time.Second, c.waits)
					shown := []string{}
					for _, one := range events(c.waits) {
						for _, two := range c.first.Events {
							if one.Key == two.Key {
								name := one.Key[strings.LastIndex(one.Key, "/")+1:]
								shown = append(shown, name+"="+r.stands[name])
							}
						}
					}
					e.gives(again("", 60, c.first.Listing.Identity), strings.Join(shown, " "))
				})
			})
		}
	}
}
