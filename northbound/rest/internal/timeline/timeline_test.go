package timeline

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/keyplane/keyplane/proto/ligato/linux/l3"
	"github.com/keyplane/keyplane/scheduler"
)

const (
	created   = scheduler.Create
	updated   = scheduler.Update
	deleted   = scheduler.Delete
	gone      = scheduler.Removed
	standsNow = scheduler.Configured
	waits     = scheduler.Pending
	failed    = scheduler.Failed
)

func metric(n uint32) proto.Message { return &l3.Route{Metric: n} }

// record is a transaction that ended so many seconds after the beginning.
func record(at int, ops ...scheduler.Operation) *scheduler.Record {
	t := time.Unix(int64(at), 0)
	return &scheduler.Record{Seq: uint64(at), Start: t, Stop: t, Executed: scheduler.Operations{}.With(ops...)}
}

// story shows the revisions of a key: "1-3 CONFIGURED 7", and "down" where it does not stand.
func story(revs []Revision) string {
	var out []string
	for _, r := range revs {
		since, until := "", ""
		if !r.Since.IsZero() {
			since = fmt.Sprint(r.Since.Unix())
		}
		if !r.Until.IsZero() {
			until = fmt.Sprint(r.Until.Unix())
		}
		s := fmt.Sprintf("%s-%s %s %d", since, until, r.State, r.Value.(*l3.Route).GetMetric())
		if !r.Applied {
			s += " down"
		}
		out = append(out, s)
	}
	return strings.Join(out, "; ")
}

func TestRevisions(t *testing.T) {
	const key = "k"
	tests := []struct {
		name    string
		now     *scheduler.Status
		records []*scheduler.Record
		want    string
	}{
		{
			"made, changed, gone, made again",
			&scheduler.Status{Key: key, State: standsNow, Actual: metric(3)},
			[]*scheduler.Record{
				record(1, scheduler.Operation{Verb: created, Key: key, New: metric(1), NewState: standsNow}),
				record(2, scheduler.Operation{Verb: updated, Key: key, Old: metric(1), New: metric(2), OldState: standsNow, NewState: standsNow}),
				record(4, scheduler.Operation{Verb: deleted, Key: key, Old: metric(2), OldState: standsNow, NewState: gone}),
				record(7, scheduler.Operation{Verb: created, Key: key, New: metric(3), NewState: standsNow}),
			},
			"1-2 CONFIGURED 1; 2-4 CONFIGURED 2; 7- CONFIGURED 3",
		},
		{
			"recreated within one transaction", nil,
			[]*scheduler.Record{
				record(1, scheduler.Operation{Verb: created, Key: key, New: metric(1), NewState: standsNow}),
				record(2,
					scheduler.Operation{Verb: deleted, Key: key, Old: metric(1), OldState: standsNow, NewState: waits, Recreate: true},
					scheduler.Operation{Verb: created, Key: key, New: metric(2), OldState: waits, NewState: standsNow, Recreate: true}),
			},
			"1-2 CONFIGURED 1; 2- CONFIGURED 2",
		},
		{
			"taken down, still wanted", nil,
			[]*scheduler.Record{
				record(1, scheduler.Operation{Verb: created, Key: key, New: metric(1), NewState: standsNow}),
				record(2, scheduler.Operation{Verb: deleted, Key: key, Old: metric(1), OldState: standsNow, NewState: waits}),
			},
			"1-2 CONFIGURED 1; 2- PENDING 1 down",
		},
		{
			"failed to change, failed to come", nil,
			[]*scheduler.Record{
				record(1, scheduler.Operation{Verb: created, Key: key, New: metric(1), NewState: failed, NewErr: errors.New("no")}),
				record(2, scheduler.Operation{Verb: created, Key: key, New: metric(1), OldState: failed, NewState: standsNow}),
				record(3, scheduler.Operation{Verb: updated, Key: key, Old: metric(1), New: metric(2), OldState: standsNow, NewState: failed}),
			},
			"1-2 FAILED 1 down; 2-3 CONFIGURED 1; 3- FAILED 2",
		},
		{
			"older than the history", nil,
			[]*scheduler.Record{record(5, scheduler.Operation{Verb: updated, Key: key, Old: metric(1), New: metric(2), OldState: standsNow, NewState: standsNow})},
			"-5 CONFIGURED 1; 5- CONFIGURED 2",
		},
		{
			"forgotten by the history",
			&scheduler.Status{Key: key, State: waits, Desired: metric(1), Since: time.Unix(3, 0)}, nil,
			"3- PENDING 1 down",
		},
		{
			"changed without an operation",
			&scheduler.Status{Key: key, State: scheduler.Missing, Desired: metric(1), Since: time.Unix(9, 0)},
			[]*scheduler.Record{record(1, scheduler.Operation{Verb: created, Key: key, New: metric(1), NewState: standsNow})},
			"1-9 CONFIGURED 1; 9- MISSING 1 down",
		},
		{
			"another key", nil,
			[]*scheduler.Record{record(1, scheduler.Operation{Verb: created, Key: "other", New: metric(1), NewState: standsNow})},
			"",
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var now []*scheduler.Status
			if tt.now != nil {
				now = append(now, tt.now)
			}
			c := New(now, tt.records, func(k string) bool { return k == key })
			if got := story(c.Revisions[key]); got != tt.want {
				t.Errorf("got  %s\nwant %s", got, tt.want)
			}
			for _, r := range c.Revisions[key] {
				if !r.Since.IsZero() && c.At(key, r.Since).Txn != r.Txn {
					t.Errorf("at its beginning %+v does not count", r)
				}
				if !r.Until.IsZero() && c.At(key, r.Until) != nil && c.At(key, r.Until).Since.Equal(r.Since) {
					t.Errorf("at its end %+v still counts", r)
				}
			}
		})
	}
}

// What meets a dependency is told as of each moment.
func TestMeeting(t *testing.T) {
	c := New(nil, []*scheduler.Record{
		record(1, scheduler.Operation{Verb: created, Key: "a/1", New: metric(1), NewState: standsNow}),
		record(2, scheduler.Operation{Verb: created, Key: "a/2", New: metric(1), NewState: standsNow}, scheduler.Operation{Verb: created, Key: "b/1", New: metric(1), NewState: waits}),
		record(3, scheduler.Operation{Verb: deleted, Key: "a/1", Old: metric(1), OldState: standsNow, NewState: gone}),
	}, func(string) bool { return true })
	folder := scheduler.Dependency{Prefixes: []string{"a/", "b/", "a/"}}
	for at, want := range map[int64]string{0: "[]", 1: "[a/1]", 2: "[a/1 a/2]", 3: "[a/2]"} {
		if got := fmt.Sprint(c.Satisfying(folder, time.Unix(at, 0))); got != want {
			t.Errorf("at %d: %s, want %s", at, got, want)
		}
	}
	only2 := scheduler.Dependency{Prefixes: []string{"a/"}, Match: func(key string) bool { return key == "a/2" }}
	if got := fmt.Sprint(c.Satisfying(only2, time.Unix(2, 0))); got != "[a/2]" {
		t.Errorf("got %s", got)
	}
}
