package past_test

import (
	"errors"
	"fmt"
	"iter"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/keyplane/keyplane/northbound/rest/past"
	"github.com/keyplane/keyplane/scheduler"
)

// A shelf is a Store in memory, which outlives a Log.
type shelf struct {
	mu  sync.Mutex // guards all
	all map[string][]byte
}

func (s *shelf) Load() iter.Seq2[string, []byte] {
	s.mu.Lock()
	defer s.mu.Unlock()
	return maps.All(maps.Clone(s.all))
}

func (s *shelf) Save(changes iter.Seq2[string, []byte]) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	for key, value := range changes {
		if value == nil {
			delete(s.all, key)
			continue
		}
		s.all[key] = value
	}
	return nil
}

// A history has the transactions of one run.
type history []*scheduler.Record

func (h history) HistorySince(n uint64) ([]*scheduler.Record, uint64) { return h[n:], uint64(len(h)) }

// run has a Log of a run that makes records, and ends.
func run(t *testing.T, s *shelf, records ...*scheduler.Record) *past.Log {
	t.Helper()
	l := past.New(past.Options{Store: s, History: history(records)})
	l.Save()
	l.Save() // there is nothing new
	return l
}

// began is when the first transaction begins.
var began = time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)

// record returns a transaction that has made one value, or has failed to, perhaps again.
func record(seq int, before, err error) *scheduler.Record {
	key := fmt.Sprintf("config/%d", seq)
	op := scheduler.Operation{Verb: scheduler.Create, Key: key, New: wrapperspb.String("secret"), NewState: scheduler.Configured, OldErr: before}
	if err != nil {
		op.NewErr, op.NewState = err, scheduler.Failed
	}
	return &scheduler.Record{
		Seq: uint64(seq), Type: scheduler.Northbound, Description: "agentctl, by anna", Start: began.Add(time.Duration(seq) * time.Second),
		Executed: scheduler.Operations{}.With(op),
	}
}

// told returns the records of earlier runs, one per line.
func told(l *past.Log) string {
	var out strings.Builder
	for _, r := range l.Earlier() {
		fmt.Fprintf(&out, "#%d %s:", r.SeqNum, r.Description)
		for _, op := range r.Executed {
			fmt.Fprintf(&out, " %s %s %s %s%s", op.Operation, op.Key, op.NewState, op.NewErrMsg, strings.Repeat("!", len(r.Values)))
		}
		out.WriteString("\n")
	}
	return out.String()
}

func TestTransactionsOutliveTheAgent(t *testing.T) {
	s := &shelf{all: map[string][]byte{}}
	first := run(t, s, record(0, nil, nil), record(1, nil, errors.New("no room")))
	if got := told(first); got != "" {
		t.Errorf("the first run has earlier ones: %s", got)
	}
	want := "#0 agentctl, by anna: CREATE config/0 CONFIGURED \n#1 agentctl, by anna: CREATE config/1 FAILED no room\n"
	second := run(t, s, &scheduler.Record{Seq: 0, Start: began.Add(time.Hour), Executed: record(7, nil, nil).Executed})
	if got := told(second); got != want {
		t.Errorf("the second run has\n%swant\n%s", got, want)
	}
	if got := told(past.New(past.Options{Store: s})); got != want+"#0 : CREATE config/7 CONFIGURED \n" {
		t.Errorf("the third run has\n%s", got)
	}
	for key, text := range s.all {
		if strings.Contains(string(text), "secret") {
			t.Errorf("%s has a value: %s", key, text)
		}
	}
}

func TestTransactionsWithoutNewsAreNotKept(t *testing.T) {
	s := &shelf{all: map[string][]byte{}}
	again := record(2, errors.New("no room"), errors.New("no room"))
	healed := record(3, errors.New("no room"), nil)
	again.Type, healed.Type = scheduler.RetryFailed, scheduler.RetryFailed
	run(t, s, &scheduler.Record{Seq: 1, Start: began}, again, healed)
	if got := told(past.New(past.Options{Store: s})); got != "#3 agentctl, by anna: CREATE config/3 CONFIGURED \n" {
		t.Errorf("it has\n%s", got)
	}
}

// TestTransactionsAreSavedTogether: a kill loses those of the last Period.
func TestTransactionsAreSavedTogether(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &shelf{all: map[string][]byte{}}
		l := past.New(past.Options{Store: s, History: history{record(0, nil, nil), record(1, nil, nil)}})
		go func() { _ = l.Run(t.Context()) }()
		<-time.After(past.Period - 1)
		synctest.Wait()
		if got := told(past.New(past.Options{Store: s})); got != "" {
			t.Errorf("before the end of the period, it has\n%s", got)
		}
		<-time.After(1)
		synctest.Wait()
		if got := len(past.New(past.Options{Store: s}).Earlier()); got != 2 {
			t.Errorf("after the period, it has %d", got)
		}
	})
}

func TestOldTransactionsAreRemoved(t *testing.T) {
	s := &shelf{all: map[string][]byte{}}
	for part := range 3 {
		var some []*scheduler.Record
		for i := range 100 {
			some = append(some, record(part*100+i, nil, nil))
		}
		run(t, s, some...)
	}
	got := past.New(past.Options{Store: s}).Earlier()
	if len(got) != 200 || got[0].SeqNum != 100 || got[199].SeqNum != 299 {
		t.Errorf("%d are kept", len(got))
	}
	large := record(1000, nil, nil)
	large.Executed = scheduler.Operations{}.With(slices.Repeat([]scheduler.Operation{large.Executed.At(0)}, 151)...)
	run(t, s, large)
	got = past.New(past.Options{Store: s}).Earlier()
	if last := got[len(got)-1]; len(last.Executed) != 100 || last.Cut != 51 || !last.Earlier {
		t.Errorf("of 151 operations, %d are kept and %d cut", len(last.Executed), last.Cut)
	}
}
