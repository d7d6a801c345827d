package fleet

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/keyplane/keyplane/cmd/agentctl/internal/session"
	"github.com/keyplane/keyplane/kvdbsync"
	"github.com/keyplane/keyplane/kvdbsync/conformance"
)

// An unsureStore is a store whose first answer to Apply is lost.
type unsureStore struct {
	conformance.Memory
	takes, lost bool // it makes the changes nevertheless; the answer was lost
}

func (s *unsureStore) Apply(ctx context.Context, changes []kvdbsync.Pair) error {
	if s.lost {
		return s.Memory.Apply(ctx, changes)
	}
	s.lost = true
	if s.takes {
		if err := s.Memory.Apply(ctx, changes); err != nil {
			return err
		}
	}
	return context.DeadlineExceeded
}

// TestUnsureChangesAreTakenBack undoes a change of which nobody knows whether the store has made it.
func TestUnsureChangesAreTakenBack(t *testing.T) {
	const key = "/vnf-agent/edge-1/config/linux/interfaces/v2/interface/a"
	for _, takes := range []bool{true, false} {
		store := unsureStore{takes: takes}
		if err := store.Put(t.Context(), key, []byte(`{"name":"a"}`)); err != nil {
			t.Fatal(err)
		}
		var out bytes.Buffer
		o := rollout{s: &session.Session{Streams: session.Streams{Out: &out}}, store: &store, batch: 1, maxFailures: 1, undo: true}
		err := o.run(t.Context(), []*job{{label: "edge-1", changes: []kvdbsync.Pair{{Key: key, Value: []byte(`{"name":"a","mtu":1400}`)}}}})
		if !errors.Is(err, errNotAll) || !strings.Contains(out.String(), "FAILED: the store may have taken the change or not") || strings.Contains(out.String(), "somebody else") {
			t.Errorf("it takes them %t: %s%v", takes, &out, err)
		}
		if value, err := store.Get(t.Context(), key); string(value) != `{"name":"a"}` || err != nil {
			t.Errorf("it takes them %t: the value is %s, %v", takes, value, err)
		}
	}
}
