package skeleton

import (
	"context"
	"errors"
	"maps"
	"os/exec"
	"slices"
	"testing"
	"testing/synctest"

	"google.golang.org/protobuf/types/known/emptypb"

	"github.com/keyplane/keyplane/scheduler"
	"github.com/keyplane/keyplane/scheduler/conformance"
)

var foreign = Entry{Tag: "made by hand", Port: "p1", RateKbps: 64, Burst: 800}

func TestDescriptor(t *testing.T) {
	slow := &Policer{Name: "a", Port: "p1", RateKbps: 64}
	conformance.Run(t, conformance.Suite[*Policer, uint32]{
		New: func(*testing.T) scheduler.Descriptor[*Policer, uint32] { return descriptor(newMemory(foreign)) },
		Values: []scheduler.Desired[*Policer]{
			{Key: Prefix + "a", Value: slow},
			{Key: Prefix + "b", Value: &Policer{Name: "b", Port: "p1", RateKbps: 10_000_000, BurstBytes: 1500}},
		},
		Changes: []conformance.Change[*Policer]{
			{Name: "rate", Key: Prefix + "a", From: slow, To: &Policer{Name: "a", Port: "p1", RateKbps: 128}},
			{Name: "burst", Key: Prefix + "a", From: slow, To: &Policer{Name: "a", Port: "p1", RateKbps: 64, BurstBytes: 9000}},
			{Name: "port", Key: Prefix + "a", From: slow, To: &Policer{Name: "a", Port: "p2", RateKbps: 64}, How: conformance.Recreated},
			{Name: "default burst", Key: Prefix + "a", From: slow, To: &Policer{Name: "a", Port: "p1", RateKbps: 64, BurstBytes: 800}, How: conformance.Unchanged},
		},
		Invalid: []conformance.Invalid[*Policer]{
			{Name: "everything", Value: &Policer{}, Fields: []string{"name", "port", "rate_kbps"}},
			{Name: "too fast", Value: &Policer{Name: "a", Port: "p1", RateKbps: 10_000_001}, Fields: []string{"rate_kbps"}},
			{Name: "too slow", Value: &Policer{Name: "a", Port: "p1", RateKbps: 7}, Fields: []string{"rate_kbps"}},
		},
	})
}

// A Create whose answer was lost left a policer on the port of a version since
// replaced.
func TestCreateAdoptsNoOtherPort(t *testing.T) {
	m := newMemory(foreign)
	h := &handler{m}
	old, now := &Policer{Name: "a", Port: "p1", RateKbps: 64}, &Policer{Name: "a", Port: "p2", RateKbps: 64}
	if _, err := h.create(t.Context(), Prefix+"a", old); err != nil {
		t.Fatal(err)
	}
	id, err := h.create(t.Context(), Prefix+"a", now)
	if want := map[uint32]Entry{1: foreign, id: entryOf(now)}; err != nil || !maps.Equal(m.entries, want) {
		t.Errorf("the device has %v, err %v, want %v", m.entries, err, want)
	}
}

// unreadable is a device that does not answer List.
type unreadable struct{ *memory }

func (unreadable) List(context.Context) (map[uint32]Entry, error) {
	return nil, errors.New("no answer")
}

func TestRetrieveSaysThatItCannot(t *testing.T) {
	h := &handler{unreadable{newMemory()}}
	for f, err := range h.retrieve(t.Context(), nil) {
		if err == nil {
			t.Errorf("found %v", f)
		}
		return
	}
	t.Error("found nothing, without an error: all would be removed")
}

// A policer waits for its port, and goes before it does.
func TestPolicerFollowsItsPort(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMemory(foreign)
		s := scheduler.New(scheduler.Options{})
		policers, err := Register(s, m)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := scheduler.Register(s, scheduler.Descriptor[*emptypb.Empty, struct{}]{Name: "port", Prefix: PortPrefix}); err != nil {
			t.Fatal(err)
		}
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- s.Run(ctx) }()

		v, err := s.Value(Prefix+"a", &Policer{Name: "a", Port: "p1", RateKbps: 64})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := s.Commit(ctx, scheduler.Txn{Changes: []scheduler.Change{v.Change()}}); err != nil {
			t.Fatal(err)
		}
		if st, _ := s.Status(Prefix + "a"); st.State != scheduler.Pending || !slices.Equal(st.Details, []string{"port-exists"}) {
			t.Errorf("without the port it is %v %v", st.State, st.Details)
		}

		s.Observe(scheduler.Observed{Key: PortPrefix + "p1", Value: &emptypb.Empty{}})
		synctest.Wait()
		if id, ok := policers.Get("a"); !ok || m.entries[id] != entryOf(v.Message().(*Policer)) {
			t.Errorf("with the port the device has %v", m.entries)
		}

		s.Observe(scheduler.Observed{Key: PortPrefix + "p1"})
		synctest.Wait()
		if _, ok := policers.Get("a"); ok || len(m.entries) != 1 {
			t.Errorf("after the port has gone the device has %v", m.entries)
		}

		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
}

func TestGeneratedCodeIsThatOfTheSource(t *testing.T) {
	cmd := exec.CommandContext(t.Context(), "go", "-C", "../../tools", "run", "./protogen", "-check", "../examples")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("%v:\n%s", err, out)
	}
}
