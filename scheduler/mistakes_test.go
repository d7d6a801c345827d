package scheduler_test

import (
	"context"
	"errors"
	"log/slog"
	"maps"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/protobuf/types/known/emptypb"

	"github.com/keyplane/keyplane/scheduler"
	"github.com/keyplane/keyplane/scheduler/inspect"
	"github.com/keyplane/keyplane/scheduler/wait"
)

// TestWrongChangesAreRefused: a transaction with a change that cannot be right is refused by
// whatever takes it, with an error that names the mistake, and the scheduler goes on.
func TestWrongChangesAreRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, other := scheduler.New(scheduler.Options{}), scheduler.New(scheduler.Options{})
		plain(t, s, func(string) error { return nil })
		plain(t, other, func(string) error { return nil })
		defer begin(t, s)()
		good, foreign := interfacesNamed(t, s, 2), interfacesNamed(t, other, 1)[0]
		mislabelled := good[0]
		mislabelled.Key = good[1].Key
		refused := scheduler.Change{Key: key("if1"), Value: foreign.Value, Err: errInvalid}
		for name, c := range map[string]struct {
			change scheduler.Change
			says   string
		}{
			"value of another scheduler": {foreign, "the value was made by another Scheduler"},
			"last valid value of it":     {refused, "the value was made by another Scheduler"},
			"zero value":                 {scheduler.Value{}.Change(), "the value is empty"},
			"no key":                     {scheduler.Unwant(""), "the key is empty"},
			"key of another value":       {mislabelled, "the key of the change differs"},
		} {
			txn := scheduler.Txn{Changes: []scheduler.Change{good[1], c.change}}
			_, committed := s.Commit(t.Context(), txn)
			_, planned := s.Plan(t.Context(), txn)
			for how, err := range map[string]error{"Commit": committed, "Plan": planned, "Submit": s.Submit(t.Context(), txn)} {
				if !errors.Is(err, scheduler.ErrMisuse) || !strings.Contains(err.Error(), c.says) || !strings.Contains(err.Error(), "change 2") {
					t.Errorf("%s of %s returns %v, want ErrMisuse of change 2 with %q", how, name, err, c.says)
				}
			}
		}
		if n := len(s.Statuses("")); n != 0 {
			t.Errorf("%d values stand after what was refused", n)
		}
		mustCommit(t, s, scheduler.Txn{Changes: good})
	})
}

// TestWrongOrderIsRefused: what must come before something else is an error after it.
func TestWrongOrderIsRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := scheduler.New(scheduler.Options{})
		g := group(t, s, "net")
		register := func(name, southbound string) error {
			_, err := scheduler.Register(s, scheduler.Descriptor[*emptypb.Empty, struct{}]{Name: name, Prefix: name + "/", Connection: southbound})
			return err
		}
		must(t, register("a", "net"))
		must(t, register("b", "disk"))
		wants := func(call string, err error, says string) {
			t.Helper()
			if !errors.Is(err, scheduler.ErrMisuse) || !strings.Contains(err.Error(), says) {
				t.Errorf("%s: %v, want ErrMisuse with %q", call, err, says)
			}
		}
		if again := group(t, s, "net"); again != g {
			t.Error("a second Connection is another one")
		}
		_, err := s.Connection("disk")
		wants("Connection after Register", err, `connection "disk" is registered already`)
		wants("Intercept after Register", g.Intercept(nil), "is registered already")
		wants("InterceptAll after Register", g.InterceptAll(nil), "is registered already")
		defer begin(t, s)()
		mustCommit(t, s, scheduler.Txn{})
		wants("second Run", s.Run(t.Context()), "Run was called twice")
		wants("Register after Run", register("c", ""), "Register comes before Run")
		_, err = s.Connection("late")
		wants("Connection after Run", err, "Connection comes before Run")
		wants("Refresh", s.Refresh("a", "z"), `no descriptor is named "z"`)
		must(t, errors.Join(s.Refresh("a"), s.Refresh()))
		mustCommit(t, s, scheduler.Txn{})
	})
}

// TestConnectionOfGroup: a descriptor uses its own connection, else that of its group, else
// one of its own name.
func TestConnectionOfGroup(t *testing.T) {
	s := scheduler.New(scheduler.Options{})
	register := func(to scheduler.Registrar, name, connection string) {
		t.Helper()
		_, err := scheduler.Register(to, scheduler.Descriptor[*emptypb.Empty, struct{}]{Name: name, Prefix: name + "/", Connection: connection})
		must(t, err)
	}
	g := s.OnConnection("net")
	register(g, "grouped", "")
	register(g, "elsewhere", "disk")
	register(s, "named", "tar")
	register(s, "alone", "")
	register(s.OnConnection(""), "unnamed", "")
	got := map[string]string{}
	for _, d := range inspect.Descriptors(s) {
		got[d.Name] = d.Connection
	}
	want := map[string]string{"grouped": "net", "elsewhere": "disk", "named": "tar", "alone": "alone", "unnamed": "unnamed"}
	if !maps.Equal(got, want) {
		t.Errorf("connections are %v, want %v", got, want)
	}
	if _, err := s.Connection("net"); !errors.Is(err, scheduler.ErrMisuse) {
		t.Errorf("Connection after the group has registered returns %v", err)
	}
	if _, err := scheduler.Register(g, scheduler.Descriptor[*emptypb.Empty, struct{}]{Name: "grouped", Prefix: "b/"}); !errors.Is(err, scheduler.ErrMisuse) {
		t.Errorf("a second descriptor of that name: %v", err)
	}
}

// TestRetrieveAfterNobody: Run fails, and so does what would wait for it.
func TestRetrieveAfterNobody(t *testing.T) {
	s := scheduler.New(scheduler.Options{})
	_, err := scheduler.Register(s, scheduler.Descriptor[*emptypb.Empty, struct{}]{Name: "a", Prefix: "a/", RetrieveAfter: []string{"nobody"}})
	must(t, err)
	if err := s.Run(t.Context()); !errors.Is(err, scheduler.ErrMisuse) || !strings.Contains(err.Error(), `"nobody"`) {
		t.Errorf("Run returns %v", err)
	}
	if _, err := s.Commit(t.Context(), scheduler.Txn{}); !errors.Is(err, scheduler.ErrStopped) {
		t.Errorf("Commit returns %v", err)
	}
}

// TestWaitTellsWhy waits for values of which none will be applied.
func TestWaitTellsWhy(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		net := newFakeNet()
		s := scheduler.New(scheduler.Options{Log: slog.New(slog.DiscardHandler)})
		net.descriptors(t, s)
		defer begin(t, s)()
		net.set([]string{"break", "failed", "terminal"})
		net.set([]string{"break", "lacking", "lacking"})
		net.set([]string{"break", "retrying"})
		txn := scheduler.Txn{Changes: []scheduler.Change{{Key: key("invalid"), Err: errInvalid}}}
		for _, name := range []string{"good", "failed", "lacking", "retrying"} {
			v, err := s.Value(key(name), message(name, nil))
			must(t, err)
			txn.Changes = append(txn.Changes, v.Change())
		}
		pending, err := s.Value(key("pending"), message("pending", []string{"peer=nobody"}))
		must(t, err)
		txn.Changes = append(txn.Changes, pending.Change())
		if _, err := s.Commit(t.Context(), txn); err == nil {
			t.Fatal("nothing failed")
		}
		must(t, s.Refresh("interface"))
		synctest.Wait() // Refresh only leaves word
		must(t, wait.For(t.Context(), s, key("good"), key("eth0")))
		for name, want := range map[string]string{
			"failed":   "FAILED: kernel lacks it",
			"lacking":  "UNIMPLEMENTED: kernel lacks it: " + scheduler.ErrUnimplemented.Error(),
			"invalid":  "INVALID: invalid value: of its time",
			"typo":     "does not exist: it is neither declared nor found",
			"retrying": "RETRYING: broken",
			"pending":  "PENDING: it waits for veth-peer-exists",
		} {
			ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
			begun := time.Now()
			err := wait.For(ctx, s, key("good"), key(name))
			cancel()
			waits := name == "retrying" || name == "pending"
			if !errors.Is(err, wait.ErrNotApplied) || errors.Is(err, context.DeadlineExceeded) != waits {
				t.Errorf("Wait for %s returns %v", name, err)
			}
			if took := time.Since(begun); waits != (took > 0) {
				t.Errorf("Wait for %s takes %v", name, took)
			}
			var not *wait.Error
			if !errors.As(err, &not) || len(not.Values) != 1 || not.Values[0].Key != key(name) || !strings.Contains(err.Error(), want) {
				t.Errorf("Wait for %s returns %v, want one value that is %s", name, err, want)
			}
		}
	})
}
