package orchestrator_test

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/keyplane/keyplane/scheduler"
)

// An agent may learn in the middle of a transaction that what a store says may not be applied any more. What has not begun
// then does not begin, whatever is retried or read back meanwhile, and other stores do not wait. It is done when it may be.
func TestWithheldInTheMiddle(t *testing.T) {
	const many = 100
	var puts, all []string
	for i := range many {
		puts = append(puts, fmt.Sprintf("new%03d=1", i))
	}
	all = append(append(all, "file1=1", "file2=2"), puts...)
	for _, test := range []struct {
		name  string
		begin func(r *rig)
	}{
		{"a change of one store", func(r *rig) {
			r.give("files", listed("file1=1"))
			r.give("etcd", listed("old=1"))
			r.withholdAfter(5)
			r.give("etcd", listed("old=? "+strings.Join(puts, " ")))
		}},
		{"the first transaction, with all stores", func(r *rig) {
			r.withholdAfter(5)
			r.inputs["files"].give(listed("file1=1"))
			r.inputs["etcd"].give(listed(strings.Join(puts, " ")))
		}},
	} {
		t.Run(test.name, func(t *testing.T) {
			bubble(t, map[string]int{"etcd": 2, "files": 1}, "", func(t *testing.T, r *rig) {
				test.begin(r)
				<-time.After(second)
				synctest.Wait()
				if n := strings.Count(r.standing(), "new"); n == 0 || n > many/2 {
					t.Errorf("%d of %d values of the store were made", n, many)
				}
				before := r.standing()
				if !strings.Contains(before, "file1=1") {
					t.Errorf("the other store waits: %s", before)
				}
				st, _ := r.sched.Status(prefix + "new099")
				if want := "not executed: what etcd says may not be applied: another agent owns the label: that of the test"; st.State != scheduler.Failed || st.Err.Error() != want {
					t.Errorf("the state is %v (%v), want FAILED (%s)", st.State, st.Err, want)
				}
				r.give("files", listed("file2=2 file1=1"))
				if _, err := r.sched.Commit(t.Context(), scheduler.Txn{Refresh: true}); err != nil {
					t.Error(err)
				}
				<-time.After(time.Hour)
				if got, want := r.standing(), strings.Replace(before, "file1=1", "file1=1 file2=2", 1); got != want {
					t.Errorf("while it is withheld: stands %s, want %s", got, want)
				}
				r.inputs["etcd"].allow()
				<-time.After(second)
				synctest.Wait()
				if got, want := r.standing(), strings.Join(all, " "); got != want {
					t.Errorf("when it is not withheld: stands %s, want %s", got, want)
				}
				for _, st := range r.sched.Statuses("") {
					if st.State != scheduler.Configured {
						t.Errorf("%s is %v: %v", st.Key, st.State, st.Err)
					}
				}
			})
		})
	}
}

// A key belongs to the source whose valid value takes effect, not to one above it whose value is refused.
func TestRefusedValueWithholdsNothing(t *testing.T) {
	var puts []string
	for i := range 100 {
		puts = append(puts, fmt.Sprintf("new%03d=1", i))
	}
	bubble(t, map[string]int{"etcd": 2, "files": 1}, "", func(t *testing.T, r *rig) {
		r.withholdAfter(5)
		r.inputs["files"].give(listed("shared=1"))
		r.inputs["etcd"].give(listed("shared=99999 " + strings.Join(puts, " ")))
		<-time.After(second)
		synctest.Wait()
		if got := r.standing(); strings.Count(got, "new") > 50 || !strings.Contains(got, "shared=1") {
			t.Errorf("stands %s; want shared=1 of the files, and few values of etcd", got)
		}
	})
}

// withholdAfter withholds what etcd says after n more calls of verbs.
func (r *rig) withholdAfter(n int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.called = func() {
		if n--; n == 0 {
			r.inputs["etcd"].withheld.Store(true)
		}
	}
}
