package orchestrator_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/keyplane/keyplane/kvdbsync"
)

// A listing is confirmed when its values are in effect: those that came with it, and those of
// earlier transactions.
func TestConfirmed(t *testing.T) {
	bubble(t, map[string]int{"etcd": 2, "files": 1, "grpc": 3}, "", func(t *testing.T, r *rig) {
		confirmed := func(source string) time.Time {
			for _, h := range r.orch.Health() {
				if h.Source == source {
					return h.Confirmed
				}
			}
			t.Fatal("no such source: " + source)
			return time.Time{}
		}
		listed := func(text string) kvdbsync.Change {
			return kvdbsync.Change{Synced: true, Resynced: true, Listing: kvdbsync.Listing{Began: time.Now()}, Events: events(text)}
		}
		first := time.Now()
		r.give("etcd", listed("if1=1500"))
		if at := confirmed("etcd"); !at.IsZero() {
			t.Errorf("before the first transaction: confirmed at %v", at)
		}
		<-time.After(time.Second)
		r.give("files", listed(""))
		if at := confirmed("etcd"); !at.Equal(first) || !confirmed("files").Equal(first.Add(time.Second)) {
			t.Errorf("after the first transaction: etcd at %v, files at %v; expected the times of their listings", at, confirmed("files"))
		}

		told := make(chan string) // operations wait until they are read
		r.told = told
		r.give("etcd", kvdbsync.Change{Synced: true, Events: events("if1=9000")})
		second := time.Now()
		r.give("etcd", listed(""))
		if at := confirmed("etcd"); !at.Equal(first) {
			t.Errorf("while an earlier change is under way: confirmed at %v", at)
		}
		<-told
		synctest.Wait()
		if at := confirmed("etcd"); !at.Equal(second) {
			t.Errorf("after it: confirmed at %v; expected %v", at, second)
		}
		r.orch.Relist()
		if n := r.inputs["etcd"].relists.Load() + r.inputs["files"].relists.Load(); n != 2 {
			t.Errorf("%d sources were asked to list; expected two", n)
		}
		if at := confirmed("grpc"); !at.Equal(time.Now()) {
			t.Errorf("a source without a store is confirmed at %v; expected now", at)
		}
	})
}
