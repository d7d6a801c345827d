package scheduler_test

import (
	"errors"
	"fmt"
	"testing"
	"testing/synctest"

	"google.golang.org/protobuf/types/known/emptypb"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/keyplane/keyplane/scheduler"
)

// TestRefuseKeepsTheValue refuses keys with and without a valid value, also in a transaction
// that replaces everything.
func TestRefuseKeepsTheValue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := scheduler.New(scheduler.Options{})
		layered(t, s, func(string) []scheduler.Dependency { return nil })
		defer begin(t, s)()
		unreadable := errors.New("unreadable")
		expect := func(name string, state scheduler.State, exists bool) {
			t.Helper()
			st, ok := s.Status("layer/" + name)
			if !ok || st.State != state || (st.Actual != nil) != exists {
				t.Errorf("%s is %+v, want %v, existing: %t", name, st, state, exists)
			}
		}
		mustCommit(t, s, scheduler.Txn{Changes: []scheduler.Change{
			scheduler.Want("layer/a", &emptypb.Empty{}), scheduler.Want("layer/b", &emptypb.Empty{}), scheduler.Want("layer/c", &emptypb.Empty{}),
		}})
		for _, replace := range []bool{false, true} {
			changes := []scheduler.Change{
				scheduler.Refuse("layer/a", unreadable),
				scheduler.Refuse("layer/new", unreadable),
				scheduler.Want("layer/b", wrapperspb.String("of the wrong type")),
			}
			before := changes[2]
			_, err := s.Commit(t.Context(), scheduler.Txn{Replace: replace, Changes: changes})
			if first := !replace; first != (err != nil) || first && (!errors.Is(err, unreadable) || !errors.Is(err, scheduler.ErrInvalid)) {
				t.Errorf("Commit returns %v", err) // the same refusal is reported once
			}
			if changes[2].Key != before.Key || changes[2].Err != nil {
				t.Errorf("Commit modifies the change %+v", changes[2])
			}
			expect("a", scheduler.Invalid, true)
			expect("b", scheduler.Invalid, true)
			expect("new", scheduler.Invalid, false)
		}
		if _, ok := s.Status("layer/c"); ok {
			t.Error("c is there after it was replaced by nothing")
		}
		mustCommit(t, s, scheduler.Txn{Changes: []scheduler.Change{scheduler.Want("layer/a", &emptypb.Empty{}), scheduler.Unwant("layer/b")}})
		expect("a", scheduler.Configured, true)
	})
}

// TestWantOfNoMessage: a Want without a message is a mistake of the program, and refused.
func TestWantOfNoMessage(t *testing.T) {
	s := scheduler.New(scheduler.Options{})
	layered(t, s, func(string) []scheduler.Dependency { return nil })
	defer begin(t, s)()
	for name, c := range map[string]scheduler.Change{
		"no key":     scheduler.Want("", &emptypb.Empty{}),
		"no message": scheduler.Want("layer/a", nil),
	} {
		if _, err := s.Commit(t.Context(), scheduler.Txn{Changes: []scheduler.Change{c}}); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

// TestKeyDeclaredSeveralTimes: the last change of a key counts, and the record has the others
// of the transaction at their places.
func TestKeyDeclaredSeveralTimes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newTar()
		s, stop := b.begin(t, scheduler.Options{})
		defer stop()
		must(t, declare(t, s, "thing/a", "1", "thing/a", "2", "thing/a", "3", "thing/b", "1>thing/x"))
		expect(t, "the state", states(s), "thing/a CONFIGURED 3; thing/b PENDING")
		var recorded []string
		for _, o := range s.History()[0].Executed.All() {
			recorded = append(recorded, o.Key)
		}
		expect(t, "the record", fmt.Sprint(recorded), "[thing/a thing/b]")
	})
}
