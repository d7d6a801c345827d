package scheduler_test

import (
	"bytes"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"google.golang.org/protobuf/proto"

	"github.com/keyplane/keyplane/proto/ligato/linux/interfaces"
	"github.com/keyplane/keyplane/scheduler"
)

// TestEveryPair goes from each of a list of configurations to each other, by
// what differs and as a whole: only what the second says may be left.
func TestEveryPair(t *testing.T) {
	list, err := os.ReadFile("testdata/configs.list")
	must(t, err)
	var configs []string
	for line := range strings.Lines(string(list)) {
		if !strings.HasPrefix(line, "#") {
			configs = append(configs, strings.TrimSpace(line))
		}
	}
	if len(configs) < 30 {
		t.Fatalf("only %d configurations", len(configs))
	}
	alone := map[string]string{}
	for _, c := range configs {
		alone[c] = pass(t, "", c, true)
	}
	for _, from := range configs {
		for _, to := range configs {
			for _, whole := range []bool{false, true} {
				if got := pass(t, from, to, whole); got != alone[to] {
					t.Fatalf("from %q to %q (as a whole: %v):\n%s\nalone it is\n%s", from, to, whole, got, alone[to])
				}
			}
		}
	}
}

// pass commits one configuration and then another, and returns what stands and
// all statuses then.
func pass(t *testing.T, from, to string, whole bool) (out string) {
	synctest.Test(t, func(t *testing.T) {
		ctx := t.Context()
		net := &fakeNet{out: &bytes.Buffer{}, stands: map[string]proto.Message{}, foreign: map[string]bool{}, broken: map[string]string{}}
		s := scheduler.New(scheduler.Options{Log: slog.New(slog.DiscardHandler)})
		net.descriptors(t, s)
		defer begin(t, s)()
		first, second := changesOf(t, s, from), changesOf(t, s, to)
		_, _ = s.Commit(ctx, scheduler.Txn{Changes: slices.Collect(maps.Values(first))})
		txn := scheduler.Txn{Changes: slices.Collect(maps.Values(second)), Replace: whole}
		for key := range first {
			if _, ok := second[key]; !ok && !whole {
				txn.Changes = append(txn.Changes, scheduler.Unwant(key))
			}
		}
		_, _ = s.Commit(ctx, txn)
		plan, err := s.Plan(ctx, txn)
		must(t, err)
		if plan.Planned.Len() > 0 {
			t.Errorf("from %q to %q: a second plan is not empty: %v", from, to, plan.Planned)
		}
		out = picture(net, s)
	})
	return out
}

func changesOf(t *testing.T, s *scheduler.Scheduler, config string) map[string]scheduler.Change {
	out := map[string]scheduler.Change{}
	for value := range strings.SplitSeq(config, ";") {
		f := strings.Fields(value)
		if len(f) == 0 {
			continue
		}
		v, err := s.Value(key(f[0]), message(f[0], f[1:]))
		if out[key(f[0])] = v.Change(); err != nil {
			out[key(f[0])] = scheduler.Change{Key: key(f[0]), Err: err}
		}
	}
	return out
}

func picture(net *fakeNet, s *scheduler.Scheduler) string {
	net.mu.Lock()
	defer net.mu.Unlock()
	var b strings.Builder
	for _, key := range slices.Sorted(maps.Keys(net.stands)) {
		fmt.Fprintf(&b, "stands %s %s\n", key, squeezed(net.stands[key]))
	}
	for _, st := range s.Statuses("") {
		fmt.Fprintf(&b, "status %s %s %v %v\n", st.Key, st.State, st.Details, st.Err)
	}
	return b.String()
}

// squeezed is m as text, without the addresses, which stand by themselves.
func squeezed(m proto.Message) string {
	if v, ok := m.(*interfaces.Interface); ok {
		v = proto.CloneOf(v)
		v.IpAddresses = nil
		m = v
	}
	return strings.Join(strings.Fields(fmt.Sprint(m)), " ")
}
