package scheduler_test

import (
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/keyplane/keyplane/scheduler"
)

// TestOutdatedValuesWaitOnlyForWhatTheyNeed hangs verbs or a read-back of a connection. A value of another connection gets a new
// version that cannot be applied yet. Its old version leaves soon, unless what is running may let it be updated in place.
func TestOutdatedValuesWaitOnlyForWhatTheyNeed(t *testing.T) {
	for _, c := range []struct {
		name    string
		before  string // declared and applied first
		hangs   string // calls, or "many": as many as may run at once, while others wait for room
		then    string // declared while they hang
		want    string // calls soon afterwards, while they still hang
		release string // calls after they have ended
	}{
		{"a Create of others", "other/c=1 other/b=1>other/c", "create thing/a", "other/b=2>other/absent", "delete other/b", ""},
		{"many Creates of others", "other/c=1 other/b=1>other/c", "many", "other/b=2>other/absent", "delete other/b", ""},
		{"a Create that it needs", "other/c=1 other/b=1>other/c", "create thing/a", "other/b=2>thing/a", "", "update other/b"},
		{"a Create that what it needs waits for", "other/c=1 other/b=1>other/c", "create thing/a", "other/d=1>thing/a other/b=2>other/d", "",
			"create other/d, update other/b"},
		{"a Create of others than what it needs waits for", "other/c=1 other/b=1>other/c", "create thing/a", "other/d=1>other/absent other/b=2>other/d",
			"delete other/b", ""},
		{"a Create of what any-of may need", "other/c=1 other/b=1>other/c", "create thing/a", "other/b=2>thing/*", "", "update other/b"},
		{"a Create of others than what any-of may need", "other/c=1 other/b=1>other/c", "create thing/a", "other/b=2>none/*", "delete other/b", ""},
		{"a Delete of what holds its name", "thing/a=1=x other/b=1", "delete thing/a", "thing/a= other/b=2=x", "", "update other/b"},
		{"a read-back of others", "other/c=1 other/b=1>other/c", "retrieve thing/", "other/b=2>other/absent", "delete other/b", ""},
		{"a read-back of what it needs", "other/c=1 other/b=1>other/c", "retrieve thing/", "other/b=2>thing/absent", "", "delete other/b"},
	} {
		for _, together := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, together %v", c.name, together), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					b := newTar()
					s, things, stop := beginApart(t, b)
					defer stop()
					submit(t, s, c.before)
					synctest.Wait()
					b.took()
					slow := b.hangAll(c.hangs)
					if slow == "" {
						things.Ready()
					}
					if !together {
						submit(t, s, slow)
						slow = ""
						<-time.After(soon)
						synctest.Wait()
					}
					submit(t, s, slow+" "+c.then)
					<-time.After(soon)
					synctest.Wait()
					expect(t, "the calls beside it", without(b.took(), "thing/"), c.want)
					for _, call := range slices.Sorted(maps.Keys(b.hangs)) {
						b.release(call, nil)
					}
					<-time.After(soon)
					synctest.Wait()
					expect(t, "the calls after it", without(b.took(), "thing/"), c.release)
				})
			})
		}
	}
}

// A deletion that comes last does so on its connection. On another one, more verbs hang than may run at once.
func TestLastDeletionsWaitForTheirConnectionOnly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newTar()
		s := scheduler.New(scheduler.Options{Log: slog.New(slog.DiscardHandler)})
		things, others := b.descriptor("thing/"), b.descriptor("other/")
		things.Connection, others.Connection = "things", "others"
		others.MakeBeforeBreak = func(string, note) bool { return true }
		for _, d := range []scheduler.Descriptor[note, struct{}]{things, others} {
			_, err := scheduler.Register(s, d)
			must(t, err)
		}
		defer begin(t, s)()
		submit(t, s, "other/b=1")
		synctest.Wait()
		submit(t, s, b.hangAll("many"))
		submit(t, s, "other/b= other/c=1")
		<-time.After(soon)
		synctest.Wait()
		expect(t, "the calls beside them", without(b.took(), "thing/"), "create other/b, create other/c, delete other/b")
		for _, call := range slices.Sorted(maps.Keys(b.hangs)) {
			b.release(call, nil)
		}
	})
}

// A value waits for what is created last, while a verb of another connection hangs. Then it is updated in place.
func TestOutdatedValuesWaitForWhatIsCreatedLast(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newTar()
		s := scheduler.New(scheduler.Options{Log: slog.New(slog.DiscardHandler)})
		things, others := b.descriptor("thing/"), b.descriptor("other/")
		things.Connection, others.Connection = "things", "others"
		others.MakeBeforeBreak = func(key string, _ note) bool { return key != "other/last" }
		for _, d := range []scheduler.Descriptor[note, struct{}]{things, others} {
			_, err := scheduler.Register(s, d)
			must(t, err)
		}
		defer begin(t, s)()
		submit(t, s, "other/c=1 other/b=1>other/c")
		submit(t, s, b.hangAll("create thing/a"))
		<-time.After(soon)
		b.took()
		submit(t, s, "other/last=1 other/b=2>other/last")
		<-time.After(soon)
		synctest.Wait()
		expect(t, "the calls beside it", b.took(), "create other/last, update other/b")
		b.release("create thing/a", nil)
	})
}

// hangAll has a call wait, or many Creates. It returns the values that must be declared for that.
func (b *tar) hangAll(call string) (values string) {
	keys := []string{strings.TrimPrefix(call, "create ")}
	switch {
	case call == "many":
		keys = nil
		for i := range 1100 {
			keys = append(keys, fmt.Sprintf("thing/%04d", i))
		}
	case keys[0] == call:
		b.hang(call)
		return ""
	}
	for _, key := range keys {
		b.hang("create " + key)
		values += key + "=1 "
	}
	return values
}

// submit declares values, written "key=text key=text", without waiting for their transaction. An empty text: nothing is wanted.
func submit(t *testing.T, s *scheduler.Scheduler, values string) {
	t.Helper()
	var txn scheduler.Txn
	for declared := range strings.FieldsSeq(values) {
		key, text, _ := strings.Cut(declared, "=")
		if text == "" {
			txn.Changes = append(txn.Changes, scheduler.Unwant(key))
			continue
		}
		v, err := s.Value(key, wrapperspb.String(text))
		must(t, err)
		txn.Changes = append(txn.Changes, v.Change())
	}
	must(t, s.Submit(t.Context(), txn))
}

// without returns a list of calls that took returned, without those for some keys.
func without(calls, keys string) string {
	var out []string
	for call := range strings.SplitSeq(calls, ", ") {
		if call != "" && !strings.Contains(call, keys) {
			out = append(out, call)
		}
	}
	return strings.Join(out, ", ")
}

// TestReadBackDoesNotHoldAConnectionForLong has a value read back while a verb of its connection hangs. Other verbs of the
// connection begin nevertheless, and Retrieve is called when the one that hangs has ended.
func TestReadBackDoesNotHoldAConnectionForLong(t *testing.T) {
	for _, c := range []struct {
		name  string
		begin func(t *testing.T, s *scheduler.Scheduler)
		after string // calls when the verb has ended
	}{
		{"a verb has failed", func(t *testing.T, s *scheduler.Scheduler) { submit(t, s, "thing/bad=1") }, "retrieve thing/"},
		{"a resync", func(t *testing.T, s *scheduler.Scheduler) {
			must(t, s.Submit(t.Context(), scheduler.Txn{Refresh: true}))
		}, "retrieve thing/"},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newTar()
				b.refuses = "thing/bad"
				s, _, stop := beginApart(t, b)
				defer stop()
				b.hang("create thing/a")
				submit(t, s, "thing/a=1")
				<-time.After(soon)
				c.begin(t, s)
				<-time.After(2 * soon)
				synctest.Wait()
				b.took()
				for i := range 5 {
					submit(t, s, fmt.Sprintf("thing/c%d=1", i))
					<-time.After(soon)
				}
				synctest.Wait()
				expect(t, "the calls beside it", b.took(), "create thing/c0, create thing/c1, create thing/c2, create thing/c3, create thing/c4")
				b.release("create thing/a", nil)
				synctest.Wait()
				expect(t, "the calls after it", without(b.took(), "other/"), c.after)
			})
		})
	}
}

// TestReadBackFindsABusyConnectionFree has verbs begin without end, each of which takes longer than others wait for a read-back. A
// value that has failed is read back and tried again nevertheless.
func TestReadBackFindsABusyConnectionFree(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newTar()
		b.refuses, b.slow = "thing/bad", 1500*time.Millisecond
		s, _, stop := beginApart(t, b)
		defer stop()
		b.took()
		submit(t, s, "thing/bad=1")
		for i := range 100 {
			submit(t, s, fmt.Sprintf("thing/c%d=1", i))
			<-time.After(soon / 10)
		}
		calls := strings.Split(b.took(), ", ")
		for _, call := range []string{"create thing/bad", "retrieve thing/", "create thing/bad"} {
			i := slices.Index(calls, call)
			if i < 0 {
				t.Fatalf("there was no %s within 10 s", call)
			}
			calls = calls[i+1:]
		}
	})
}
