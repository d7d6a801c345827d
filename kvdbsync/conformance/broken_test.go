package conformance_test

import (
	"bytes"
	"context"
	"errors"
	"iter"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/keyplane/keyplane/kvdbsync"
	"github.com/keyplane/keyplane/kvdbsync/conformance"
)

// brokenVar tells a second run of this test program which fault to have.
const brokenVar = "CONFORMANCE_TEST_FAULT"

// A fault is a connector gone wrong, and the case that must notice.
type fault struct {
	name    string
	noticed string
	breaks  func(*conformance.Harness)
}

// A watchFunc is Watch on a Memory.
type watchFunc func(ctx context.Context, m *conformance.Memory, prefix string) iter.Seq2[kvdbsync.Batch, error]

// watching breaks the connector.
func watching(watch watchFunc) func(*conformance.Harness) {
	return func(h *conformance.Harness) { h.Connector = broken{h.Connector.(*conformance.Memory), watch} }
}

func faults() []fault { return slices.Concat(watchFaults(), writerFaults(), sessionFaults()) }

func watchFaults() []fault {
	return []fault{
		{"drops deletes", "put,_update_and_delete_arrive_in_order", changed(func(b kvdbsync.Batch) []kvdbsync.Batch {
			b.Events = slices.DeleteFunc(slices.Clone(b.Events), func(e kvdbsync.Event) bool { return e.Value == nil })
			return []kvdbsync.Batch{b}
		})},
		{"loses every 7th batch", "no_change_is_lost_after_the_listing",
			watching(func(ctx context.Context, m *conformance.Memory, prefix string) iter.Seq2[kvdbsync.Batch, error] {
				return func(yield func(kvdbsync.Batch, error) bool) {
					n := 0
					for b, err := range m.Watch(ctx, prefix) {
						if n++; n%7 == 0 && !b.Synced && err == nil {
							continue
						}
						if !yield(b, err) {
							return
						}
					}
				}
			})},
		{"tears groups apart", "changes_of_one_transaction_are_one_batch", changed(func(b kvdbsync.Batch) []kvdbsync.Batch {
			if b.Synced {
				return []kvdbsync.Batch{b}
			}
			var torn []kvdbsync.Batch
			for _, e := range b.Events {
				torn = append(torn, kvdbsync.Batch{Events: []kvdbsync.Event{e}})
			}
			return torn
		})},
		{"trims values", "values_arrive_byte_by_byte", changed(func(b kvdbsync.Batch) []kvdbsync.Batch {
			b.Events = slices.Clone(b.Events)
			for i, e := range b.Events {
				if e.Value != nil {
					b.Events[i].Value = bytes.TrimSpace(e.Value)
				}
			}
			return []kvdbsync.Batch{b}
		})},
		{"trims the prefix", "only_the_prefix_is_watched",
			watching(func(ctx context.Context, m *conformance.Memory, prefix string) iter.Seq2[kvdbsync.Batch, error] {
				return m.Watch(ctx, strings.TrimSuffix(prefix, "/"))
			})},
		{"ends with the context's error", "the_end_of_the_context_ends_the_watch",
			watching(func(ctx context.Context, m *conformance.Memory, prefix string) iter.Seq2[kvdbsync.Batch, error] {
				return func(yield func(kvdbsync.Batch, error) bool) {
					for b, err := range m.Watch(ctx, prefix) {
						if !yield(b, err) {
							return
						}
					}
					yield(kvdbsync.Batch{}, ctx.Err())
				}
			})},
		{"leaves a goroutine behind", "a_reader_that_stops_ends_the_watch",
			watching(func(ctx context.Context, m *conformance.Memory, prefix string) iter.Seq2[kvdbsync.Batch, error] {
				go func() { select {} }()
				return m.Watch(ctx, prefix)
			})},
		{"says nothing of a gap", "a_gap_loses_nothing",
			watching(func(ctx context.Context, m *conformance.Memory, prefix string) iter.Seq2[kvdbsync.Batch, error] {
				return func(yield func(kvdbsync.Batch, error) bool) {
					for b, err := range m.Watch(ctx, prefix) {
						if err != nil {
							break
						}
						if !yield(b, err) {
							return
						}
					}
					<-ctx.Done()
				}
			})},
	}
}

// changed breaks a connector by what it yields.
func changed(f func(kvdbsync.Batch) []kvdbsync.Batch) func(*conformance.Harness) {
	return watching(func(ctx context.Context, m *conformance.Memory, prefix string) iter.Seq2[kvdbsync.Batch, error] {
		return func(yield func(kvdbsync.Batch, error) bool) {
			for b, err := range m.Watch(ctx, prefix) {
				for _, part := range f(b) {
					if !yield(part, err) {
						return
					}
				}
			}
		}
	})
}

// A broken connector is Memory with a fault.
type broken struct {
	*conformance.Memory
	watch watchFunc
}

func (b broken) Watch(ctx context.Context, prefix string) iter.Seq2[kvdbsync.Batch, error] {
	return b.watch(ctx, b.Memory, prefix)
}

// TestBrokenConnector is what the second run runs, and fails.
func TestBrokenConnector(t *testing.T) {
	i := slices.IndexFunc(faults(), func(f fault) bool { return f.name == os.Getenv(brokenVar) })
	if i < 0 {
		t.Skip("runs inside TestSuiteNotices only")
	}
	conformance.Run(t, func(t *testing.T) conformance.Harness {
		h := memoryHarness(t)
		faults()[i].breaks(&h)
		h.Patience = 500 * time.Millisecond
		h.ManyKeys = 10
		return h
	})
}

func TestSuiteNotices(t *testing.T) {
	for _, f := range faults() {
		t.Run(f.name, func(t *testing.T) {
			t.Parallel()
			cmd := exec.Command(os.Args[0], "-test.run=^TestBrokenConnector$/^"+f.noticed+"$", "-test.v")
			cmd.Env = append(os.Environ(), brokenVar+"="+f.name)
			out, err := cmd.CombinedOutput()
			var failed *exec.ExitError
			if !errors.As(err, &failed) || !bytes.Contains(out, []byte("--- FAIL: TestBrokenConnector/"+f.noticed)) {
				t.Fatalf("the suite passes a connector that %s: %v\n%s", f.name, err, out)
			}
		})
	}
}
