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
	"sync"
	"sync/atomic"
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/keyplane/keyplane/models"
	"github.com/keyplane/keyplane/scheduler"
	"github.com/keyplane/keyplane/scheduler/conformance"
)

// faultVar tells a second run of this test program which fault to have.
const faultVar = "CONFORMANCE_TEST_FAULT"

type descriptor = scheduler.Descriptor[route, handle]

// A fault is a descriptor gone wrong, and the case that must notice.
type fault struct {
	name    string
	noticed string
	corrupt func(s *table, d *descriptor)
}

func faults() []fault { return slices.Concat(meaningFaults(), verbFaults(), retrieveFaults()) }

func meaningFaults() []fault {
	return []fault{
		{"has no name", "it can be registered and has the keys", func(_ *table, d *descriptor) { d.Name = "" }},
		{"has other keys", "it can be registered and has the keys", func(_ *table, d *descriptor) {
			d.Match = func(string) bool { return false }
		}},
		{"writes to what it normalizes", "normalizing twice gives the same", func(_ *table, d *descriptor) {
			d.Normalize = func(_ string, v route) (route, []string) { v.Metric = 7; return v, nil }
		}},
		{"warns without ignoring anything", "normalizing twice gives the same", func(_ *table, d *descriptor) {
			d.Normalize = func(_ string, v route) (route, []string) { return v, []string{"metric: ignored"} }
		}},
		{"never ends to normalize", "normalizing twice gives the same", func(_ *table, d *descriptor) {
			d.Normalize = func(_ string, v route) (route, []string) {
				v = proto.CloneOf(v)
				v.Metric++
				return v, nil
			}
		}},
		{"refuses what is valid", "values are valid", func(_ *table, d *descriptor) {
			d.Validate = func(string, route) error { return errors.New("no") }
		}},
		{"stops at the first invalid field", "Validate names every invalid field", func(_ *table, d *descriptor) {
			d.Validate = func(key string, v route) error {
				if fields := models.Fields(validate(key, v)); len(fields) > 0 {
					return &models.FieldError{Field: fields[0]}
				}
				return nil
			}
		}},
		{"labels nothing", "dependencies are labelled and distinct", depends(scheduler.Dependency{Key: "link/eth0"})},
		{"depends on nothing", "dependencies are labelled and distinct", depends(scheduler.Dependency{Label: "a"})},
		{"uses a label twice", "dependencies are labelled and distinct",
			depends(scheduler.Dependency{Label: "a", Key: "link/eth0"}, scheduler.Dependency{Label: "a", Key: "link/eth1"})},
		{"derives itself", "derived values have keys of their own", func(_ *table, d *descriptor) {
			d.Derived = func(key string, v route) []scheduler.KeyValue { return []scheduler.KeyValue{{Key: key, Value: v}} }
		}},
		{"derives nothing under a key", "derived values have keys of their own", func(_ *table, d *descriptor) {
			d.Derived = func(string, route) []scheduler.KeyValue { return []scheduler.KeyValue{{Key: "x", Value: route(nil)}} }
		}},
		{"claims without saying by which field", "claims name their resource and their field", func(_ *table, d *descriptor) {
			d.Claims = func(key string, _ route) []scheduler.Claim {
				return []scheduler.Claim{{Resource: key, Want: "another"}}
			}
		}},
		{"takes every version for another", "changes are followed as declared", func(_ *table, d *descriptor) {
			d.Equivalent = func(string, route, route) bool { return false }
		}},
		{"always recreates", "changes are followed as declared", func(_ *table, d *descriptor) {
			d.Recreate = func(string, route, route, handle) bool { return true }
		}},
		{"fills in defaults", "pure functions change nothing", func(_ *table, d *descriptor) {
			d.Validate = func(key string, v route) error {
				if v.Metric == 0 {
					v.Metric = 20
				}
				return validate(key, v)
			}
		}},
		{"counts calls", "pure functions change nothing", func(_ *table, d *descriptor) {
			calls := 0
			d.Derived = func(string, route) []scheduler.KeyValue {
				calls++
				return []scheduler.KeyValue{{Key: strings.Repeat("x", calls), Value: to("", nil)}}
			}
		}},
		{"relies on Validate", "pure functions take any message", func(_ *table, d *descriptor) {
			d.Dependencies = func(_ string, v route) []scheduler.Dependency {
				return []scheduler.Dependency{{Label: "a", Key: v.OutgoingInterface[:1]}}
			}
		}},
	}
}

func depends(deps ...scheduler.Dependency) func(*table, *descriptor) {
	return func(_ *table, d *descriptor) {
		d.Dependencies = func(string, route) []scheduler.Dependency { return deps }
	}
}

func verbFaults() []fault {
	return []fault{
		{"writes to what it creates", "a created value exists until it is deleted", func(s *table, d *descriptor) {
			d.Create = func(ctx context.Context, key string, v route) (handle, error) {
				v.Metric++
				return s.create(ctx, key, v)
			}
		}},
		{"deletes nothing", "a created value exists until it is deleted", func(_ *table, d *descriptor) {
			d.Delete = func(context.Context, string, route, handle) error { return nil }
		}},
		{"loses a field in Update", "changes arrive", func(s *table, d *descriptor) {
			d.Update = func(ctx context.Context, key string, old, _ route, h handle) (handle, error) {
				return s.update(ctx, key, old, old, h)
			}
		}},
		{"minds what it made", "Create may be repeated", func(s *table, d *descriptor) {
			d.Create = func(ctx context.Context, key string, v route) (handle, error) {
				if _, ok := s.routes[key]; ok {
					return 0, os.ErrExist
				}
				return s.create(ctx, key, v)
			}
		}},
		{"minds what is gone", "Delete may be repeated", func(s *table, d *descriptor) {
			d.Delete = func(ctx context.Context, key string, v route, h handle) error {
				if _, ok := s.routes[key]; !ok {
					return os.ErrNotExist
				}
				return s.delete(ctx, key, v, h)
			}
		}},
		{"leaves one out of many", "CreateAll is Create of each", func(s *table, d *descriptor) {
			d.CreateAll = func(ctx context.Context, values []scheduler.Desired[route]) []scheduler.Created[handle] {
				return append(s.createAll(ctx, values[1:]), scheduler.Created[handle]{})
			}
		}},
		{"does one thing at a time", "values come and go at once", func(s *table, d *descriptor) {
			var mu sync.Mutex
			var both sync.WaitGroup
			both.Add(2)
			var current string
			d.Create = func(ctx context.Context, key string, v route) (handle, error) {
				mu.Lock()
				current = key
				mu.Unlock()
				both.Done()
				both.Wait()
				return s.create(ctx, current, v)
			}
		}},
	}
}

func retrieveFaults() []fault {
	return []fault{
		{"invents metadata", "Retrieve reports the metadata of Create", finds(func(f found, _ []scheduler.Desired[route]) (found, bool) {
			f.Meta += 1000
			return f, true
		})},
		{"swallows its error", "Retrieve reports that it cannot read", func(s *table, d *descriptor) {
			d.Retrieve = func(ctx context.Context, wanted []scheduler.Desired[route]) iter.Seq2[found, error] {
				return func(yield func(found, error) bool) {
					for f, err := range s.retrieve(ctx, wanted) {
						if err != nil || !yield(f, nil) {
							return
						}
					}
				}
			}
		}},
		{"finds what is others'", "retrieved values belong to the descriptor", finds(func(f found, _ []scheduler.Desired[route]) (found, bool) {
			f.Key = "config/linux/l3/v2/arp/eth0/10.0.0.1"
			return f, true
		})},
		{"finds more than it was told", "a resync in sync changes nothing", finds(func(f found, _ []scheduler.Desired[route]) (found, bool) {
			f.Value = to(f.Value.DstNetwork, func(r route) { r.Metric = f.Value.Metric + 1 })
			return f, true
		})},
		{"tells values apart by their parts", "a resync in sync changes nothing", func(s *table, d *descriptor) {
			d.Derived = func(key string, v route) []scheduler.KeyValue {
				if v.GwAddr == "" {
					return nil
				}
				return []scheduler.KeyValue{{Key: "gateway/" + v.GwAddr, Value: v}}
			}
			d.Equivalent = func(_ string, a, b route) bool {
				return a.Metric == b.Metric && a.Scope == b.Scope && a.GwAddr == b.GwAddr
			}
			finds(func(f found, _ []scheduler.Desired[route]) (found, bool) {
				f.Value = to(f.Value.DstNetwork, func(r route) { r.Metric, r.Scope = f.Value.Metric, f.Value.Scope }) // the gateway waits
				return f, true
			})(s, d)
		}},
		{"does not show what it derives", "retrieved values have the same derived values", finds(func(f found, _ []scheduler.Desired[route]) (found, bool) {
			f.Value = to("", func(r route) { r.Metric, r.Scope = f.Value.Metric, f.Value.Scope })
			return f, true
		})},
		{"finds no metadata", "verbs accept the result of Retrieve", finds(func(f found, _ []scheduler.Desired[route]) (found, bool) {
			f.Meta = 0
			return f, true
		})},
		{"finds only what is wanted", "reading changes nothing", finds(func(f found, wanted []scheduler.Desired[route]) (found, bool) {
			return f, slices.ContainsFunc(wanted, func(w scheduler.Desired[route]) bool { return w.Key == f.Key })
		})},
		{"finds none of some", "RetrieveSome is Retrieve of some", func(_ *table, d *descriptor) {
			d.RetrieveSome = func(context.Context, []string, []scheduler.Desired[route]) iter.Seq2[found, error] {
				return func(func(found, error) bool) {}
			}
		}},
		{"cannot read while it writes", "values may be read while they come and go", func(s *table, d *descriptor) {
			var writing atomic.Int32
			var once sync.Once
			seen := make(chan struct{})
			d.Create = func(ctx context.Context, key string, v route) (handle, error) {
				writing.Add(1)
				defer writing.Add(-1)
				<-seen
				return s.create(ctx, key, v)
			}
			d.Retrieve = func(ctx context.Context, wanted []scheduler.Desired[route]) iter.Seq2[found, error] {
				if writing.Load() == 0 {
					return s.retrieve(ctx, wanted)
				}
				once.Do(func() { close(seen) })
				return func(yield func(found, error) bool) { yield(found{}, errors.New("busy")) }
			}
		}},
		{"forgets what nobody read", "Retrieve may be stopped early", func(s *table, d *descriptor) {
			d.Retrieve = func(ctx context.Context, wanted []scheduler.Desired[route]) iter.Seq2[found, error] {
				return func(yield func(found, error) bool) {
					for f, err := range s.retrieve(ctx, wanted) {
						if !yield(f, err) {
							clear(s.routes)
							return
						}
					}
				}
			}
		}},
	}
}

// finds breaks Retrieve by what it yields.
func finds(change func(found, []scheduler.Desired[route]) (found, bool)) func(*table, *descriptor) {
	return func(s *table, d *descriptor) {
		d.Retrieve = func(ctx context.Context, wanted []scheduler.Desired[route]) iter.Seq2[found, error] {
			return func(yield func(found, error) bool) {
				for f, err := range s.retrieve(ctx, wanted) {
					if f, ok := change(f, wanted); ok && !yield(f, err) {
						return
					}
				}
			}
		}
	}
}

// TestFault is what the second run runs, and fails.
func TestFault(t *testing.T) {
	i := slices.IndexFunc(faults(), func(f fault) bool { return f.name == os.Getenv(faultVar) })
	if i < 0 {
		t.Skip("runs inside TestSuiteNotices only")
	}
	conformance.Run(t, suite(faults()[i].corrupt))
}

func TestSuiteNotices(t *testing.T) {
	for _, f := range faults() {
		t.Run(f.name, func(t *testing.T) {
			t.Parallel()
			noticed := strings.ReplaceAll(f.noticed, " ", "_")
			cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestFault$/^"+noticed+"$", "-test.v")
			cmd.Env = append(os.Environ(), faultVar+"="+f.name)
			out, err := cmd.CombinedOutput()
			var failed *exec.ExitError
			if !errors.As(err, &failed) || !bytes.Contains(out, []byte("--- FAIL: TestFault/"+noticed)) {
				t.Fatalf("the suite passes a descriptor that %s: %v\n%s", f.name, err, out)
			}
		})
	}
}

// TestEveryCaseHasAFault keeps the list of faults as long as the suite.
func TestEveryCaseHasAFault(t *testing.T) {
	cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestTable$", "-test.v")
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	for line := range strings.Lines(string(out)) {
		name, ok := strings.CutPrefix(line, "=== RUN   TestTable/")
		name = strings.TrimSpace(name)
		if ok && !strings.Contains(name, "/") && !slices.ContainsFunc(faults(), func(f fault) bool {
			return strings.ReplaceAll(f.noticed, " ", "_") == name
		}) {
			t.Errorf("no fault shows that %q notices anything", name)
		}
	}
}
