package trial_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/keyplane/keyplane/models"
	"github.com/keyplane/keyplane/orchestrator"
	"github.com/keyplane/keyplane/orchestrator/trial"
	"github.com/keyplane/keyplane/proto/ligato/linux/interfaces"
	"github.com/keyplane/keyplane/scheduler"
)

const prefix = "config/linux/interfaces/v2/interface/"

// A notebook is a Memory that survives the lives of a test. It can be full, and lose power.
type notebook struct {
	mu   sync.Mutex
	all  map[string][]byte
	disk map[string][]byte // that survives a loss of power
	full bool
}

var errFull = errors.New("no space left")

func (n *notebook) Load() iter.Seq2[string, []byte] {
	n.mu.Lock()
	defer n.mu.Unlock()
	return maps.All(maps.Clone(n.all))
}

func (n *notebook) Save(changes iter.Seq2[string, []byte]) error { return n.Record(changes) }

func (n *notebook) Record(changes iter.Seq2[string, []byte]) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.full {
		return errFull
	}
	for key, value := range changes {
		if value == nil {
			delete(n.all, key)
		} else {
			n.all[key] = value
		}
	}
	return nil
}

func (n *notebook) Sync() error {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.disk = maps.Clone(n.all)
	return nil
}

// losePower loses what was recorded since Sync.
func (n *notebook) losePower() { n.all = maps.Clone(n.disk) }

func (n *notebook) setFull(full bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.full = full
}

func (n *notebook) Stale() error { return nil }
func (n *notebook) Renew() error { return nil }

// A host is what survives a restart of the agent: its memories and the network.
type host struct {
	intent, trials *notebook         // intent may be nil
	stands         map[string]string // interface name -> MTU
	fails          map[string]bool   // interfaces whose Create fails
	mu             sync.Mutex        // guards stands and fails
	mostMTU        uint32            // that Validate accepts; 0: any
	layers         int               // at most; 0: the default
	takes          time.Duration     // Create
	removing       time.Duration     // Delete
	patience       time.Duration     // of the orchestrator; 0: the default
}

func newHost() *host {
	empty := func() *notebook { return &notebook{all: map[string][]byte{}, disk: map[string][]byte{}} }
	return &host{intent: empty(), trials: empty(), stands: map[string]string{}, fails: map[string]bool{}}
}

// agent is one life of an agent on a host.
type agent struct {
	*testing.T
	*host
	*trial.Trials
	orch *orchestrator.Orchestrator
}

// live runs f in an agent. What f leaves open is cut off, as by a kill.
func (h *host) live(t *testing.T, f func(a *agent)) {
	t.Helper()
	quiet := slog.New(slog.DiscardHandler)
	ctx, cancel := context.WithCancel(t.Context())
	sched := scheduler.New(scheduler.Options{Log: quiet})
	if _, err := scheduler.Register(sched, h.descriptor()); err != nil {
		t.Fatal(err)
	}
	options := orchestrator.Options{Layers: orchestrator.LayerOptions{Max: h.layers}, Patience: h.patience, Log: quiet}
	trials := trial.Options{Memory: h.trials, Log: quiet}
	if h.intent != nil {
		options.Memory, trials.SyncLayers = h.intent, h.intent.Sync
	}
	a := &agent{T: t, host: h, Trials: trial.New(trials)}
	options.First = a.Due()
	a.orch = orchestrator.New(sched, options)
	a.Serve(a.orch)
	var running errgroup.Group
	for _, run := range []func(context.Context) error{sched.Run, a.orch.Run, a.Trials.Run} {
		running.Go(func() error { return run(ctx) })
	}
	a.after(time.Second) // the patience of the orchestrator
	f(a)
	cancel()
	if err := running.Wait(); err != nil {
		t.Error(err)
	}
}

// after waits in the time of the bubble.
func (a *agent) after(d time.Duration) {
	<-time.After(d)
	synctest.Wait()
}

func (h *host) set(name, mtu string) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.fails[name] {
		return scheduler.Terminal(errors.New("the kernel lacks it"))
	}
	if mtu == "" {
		delete(h.stands, name)
	} else {
		h.stands[name] = mtu
	}
	return nil
}

func (h *host) descriptor() scheduler.Descriptor[*interfaces.Interface, struct{}] {
	type none = struct{}
	type found = scheduler.Found[*interfaces.Interface, none]
	return scheduler.Descriptor[*interfaces.Interface, none]{
		Name: "interface", Model: models.For[*interfaces.Interface](),
		Validate: func(_ string, v *interfaces.Interface) error {
			if h.mostMTU != 0 && v.Mtu > h.mostMTU {
				return fmt.Errorf("mtu is %d; expected at most %d", v.Mtu, h.mostMTU)
			}
			return nil
		},
		Create: func(_ context.Context, _ string, v *interfaces.Interface) (none, error) {
			<-time.After(h.takes)
			return none{}, h.set(v.Name, fmt.Sprint(v.Mtu))
		},
		Update: func(_ context.Context, _ string, _, v *interfaces.Interface, _ none) (none, error) {
			return none{}, h.set(v.Name, fmt.Sprint(v.Mtu))
		},
		Delete: func(_ context.Context, _ string, v *interfaces.Interface, _ none) error {
			<-time.After(h.removing)
			return h.set(v.Name, "")
		},
		Retrieve: func(context.Context, []scheduler.Desired[*interfaces.Interface]) iter.Seq2[found, error] {
			return func(yield func(found, error) bool) {
				h.mu.Lock()
				all := maps.Clone(h.stands)
				h.mu.Unlock()
				for name, mtu := range all {
					v := &interfaces.Interface{Name: name}
					if _, err := fmt.Sscan(mtu, &v.Mtu); !yield(found{Value: v}, err) {
						return
					}
				}
			}
		},
	}
}

// request reads "if1=1500 if2=": a value, or a removal.
func request(text string) (q orchestrator.Request) {
	q.Layer = "agentctl"
	for f := range strings.FieldsSeq(text) {
		name, mtu, _ := strings.Cut(f, "=")
		d := orchestrator.Declared{Key: prefix + name}
		if mtu != "" {
			d.JSON = fmt.Appendf(nil, `{"name":%q,"mtu":%s}`, name, mtu)
		}
		q.Values = append(q.Values, d)
	}
	return q
}

func (a *agent) declare(text string) {
	a.Helper()
	if _, err := a.Declare(a.Context(), request(text)); err != nil {
		a.Fatal(err)
	}
}

func (a *agent) try(text string, most time.Duration) {
	a.Helper()
	if _, err := a.Try(a.Context(), request(text), most); err != nil {
		a.Fatal(err)
	}
}

// expect checks the network.
func (a *agent) expect(when, want string) {
	a.Helper()
	synctest.Wait()
	a.mu.Lock()
	defer a.mu.Unlock()
	var out []string
	for _, name := range slices.Sorted(maps.Keys(a.stands)) {
		out = append(out, name+"="+a.stands[name])
	}
	if got := strings.Join(out, " "); got != want {
		a.Errorf("%s: the network is %q; expected %q", when, got, want)
	}
}

// bubble runs f in virtual time, with a host.
func bubble(t *testing.T, f func(t *testing.T, h *host)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) { f(t, newHost()) })
}

// TestTrial begins trials, and ends them in each way.
func TestTrial(t *testing.T) {
	bubble(t, func(t *testing.T, h *host) {
		h.live(t, func(a *agent) {
			a.declare("if1=1000 if2=2000 if5=5000")
			a.try("if1=1001 if2= if3=3000", time.Minute)
			a.expect("during the trial", "if1=1001 if3=3000 if5=5000")
			a.after(59 * time.Second)
			a.expect("shortly before the end", "if1=1001 if3=3000 if5=5000")
			if list := a.List(); len(list) != 1 || len(list[0].Keys) != 3 || !list[0].Deadline.Equal(list[0].Begun.Add(time.Minute)) {
				t.Errorf("the list is %+v", list)
			}
			// The layer takes no other change.
			if _, err := a.Declare(t.Context(), request("if9=9")); !errors.Is(err, trial.ErrOnTrial) {
				t.Errorf("a change during a trial: %v", err)
			}
			if _, err := a.Try(t.Context(), request("if9=9"), time.Minute); !errors.Is(err, trial.ErrOnTrial) {
				t.Errorf("a second trial: %v", err)
			}
			a.after(2 * time.Second)
			a.expect("after the end", "if1=1000 if2=2000 if5=5000")
			if _, err := a.Confirm("agentctl"); !errors.Is(err, trial.ErrNoTrial) {
				t.Errorf("confirmed too late: %v", err)
			}

			a.try("if1=1001", time.Minute)
			if _, err := a.Confirm("agentctl"); err != nil {
				t.Error(err)
			}
			a.after(time.Hour)
			a.expect("confirmed", "if1=1001 if2=2000 if5=5000")

			a.try("if1= if4=4000", time.Minute)
			if _, err := a.Cancel(t.Context(), "agentctl"); err != nil {
				t.Error(err)
			}
			a.expect("cancelled", "if1=1001 if2=2000 if5=5000")

			q := request("if2=2001")
			q.Replace = true
			if _, err := a.Try(t.Context(), q, time.Minute); err != nil {
				t.Error(err)
			}
			a.expect("replaced", "if2=2001")
			a.after(61 * time.Second)
			a.expect("no longer replaced", "if1=1001 if2=2000 if5=5000")
			if len(h.trials.all) > 0 {
				t.Errorf("trials are still saved: %v", h.trials.all)
			}
		})
	})
}

// TestRefused has trials that do not begin: nothing of them stays.
func TestRefused(t *testing.T) {
	bubble(t, func(t *testing.T, h *host) {
		h.live(t, func(a *agent) {
			a.declare("if1=1000")
			h.fails["bad"] = true
			if _, err := a.Try(t.Context(), request("if1=1001 bad=1"), time.Minute); err == nil {
				t.Error("a trial with a value that fails begins")
			}
			a.expect("after a failure", "if1=1000")
			for _, most := range []time.Duration{0, time.Millisecond, 25 * time.Hour} {
				if _, err := a.Try(t.Context(), request("if1=1001"), most); !errors.Is(err, trial.ErrTime) {
					t.Errorf("a trial of %v: %v", most, err)
				}
			}
			h.trials.full = true
			if _, err := a.Try(t.Context(), request("if1=1001"), time.Minute); !errors.Is(err, trial.ErrNotSaved) {
				t.Errorf("a trial that cannot be saved: %v", err)
			}
			h.trials.full = false
			a.expect("after all", "if1=1000")
			a.declare("if1=1002") // no trial keeps the layer
			a.expect("declared", "if1=1002")
		})
	})
}

// TestRestart kills the agent during a trial.
func TestRestart(t *testing.T) {
	t.Run("before the deadline", func(t *testing.T) {
		bubble(t, func(t *testing.T, h *host) {
			h.live(t, func(a *agent) { a.declare("if1=1000"); a.try("if1=1001 if2=2000", time.Minute) })
			<-time.After(30 * time.Second)
			h.live(t, func(a *agent) {
				a.expect("during the trial", "if1=1001 if2=2000")
				a.after(27 * time.Second)
				a.expect("shortly before the end", "if1=1001 if2=2000")
				a.after(3 * time.Second)
				a.expect("after the end", "if1=1000")
			})
		})
	})
	t.Run("before the deadline, and confirmed", func(t *testing.T) {
		bubble(t, func(t *testing.T, h *host) {
			h.live(t, func(a *agent) { a.try("if1=1001", time.Minute) })
			h.live(t, func(a *agent) {
				if _, err := a.Confirm("agentctl"); err != nil {
					t.Error(err)
				}
			})
			<-time.After(time.Hour)
			h.live(t, func(a *agent) { a.expect("confirmed", "if1=1001") })
		})
	})
	t.Run("past the deadline", func(t *testing.T) {
		bubble(t, func(t *testing.T, h *host) {
			h.live(t, func(a *agent) { a.declare("if1=1000"); a.try("if1=1001 if2=2000", time.Minute) })
			<-time.After(time.Hour)
			h.live(t, func(a *agent) {
				a.expect("after the start", "if1=1000")
				if list := a.List(); len(list) > 0 {
					t.Errorf("the list is %+v", list)
				}
				a.declare("if1=1002") // the layer is free
			})
			h.live(t, func(a *agent) { a.expect("after another start", "if1=1002") })
		})
	})
	t.Run("past the deadline, and nothing was declared before", func(t *testing.T) {
		bubble(t, func(t *testing.T, h *host) {
			h.live(t, func(a *agent) { a.try("if1=1001", time.Minute) })
			<-time.After(time.Hour)
			h.live(t, func(a *agent) { a.expect("after the start", "") })
		})
	})
	t.Run("the clock was set back", func(t *testing.T) {
		bubble(t, func(t *testing.T, h *host) {
			h.live(t, func(a *agent) { a.try("if1=1001", time.Minute) })
			text := string(h.trials.all["agentctl"])
			year := fmt.Sprint(time.Now().Year())
			h.trials.all["agentctl"] = []byte(strings.ReplaceAll(text, `"`+year+`-`, `"2099-`))
			h.live(t, func(a *agent) {
				a.expect("after the start", "if1=1001")
				a.after(time.Minute)
				a.expect("after the whole time", "")
			})
		})
	})
	t.Run("while it begins", func(t *testing.T) {
		bubble(t, func(t *testing.T, h *host) {
			h.live(t, func(a *agent) { a.declare("if1=1000"); a.try("if1=1001", time.Minute) })
			// As if the kill had come before the end of the first transaction was saved.
			text := string(h.trials.all["agentctl"])
			at, end := strings.Index(text, `"deadline":"`), strings.Index(text, `","undo"`)
			h.trials.all["agentctl"] = []byte(text[:at] + `"deadline":"0001-01-01T00:00:00Z` + text[end:])
			h.live(t, func(a *agent) { a.expect("after the start", "if1=1000") })
		})
	})
	t.Run("a damaged record", func(t *testing.T) {
		bubble(t, func(t *testing.T, h *host) {
			h.trials.all["agentctl"] = []byte("{")
			h.live(t, func(a *agent) { a.try("if1=1001", time.Minute) })
		})
	})
}

// TestStopWhileATrialBegins ends the agent before a client has its answer. The next start takes back
// whatever is in effect.
func TestStopWhileATrialBegins(t *testing.T) {
	const short = 3 * time.Second // the scheduler waits for such a verb at its end
	for _, test := range []struct {
		name   string
		slow   func(h *host)
		old    bool   // an earlier run has left a value, which the first request prunes after its success
		during string // the network before the end of the agent
		saved  bool   // the layer, then
	}{
		{name: "before its request begins", slow: func(h *host) { h.patience = time.Hour }},
		{name: "while its values are applied", slow: func(h *host) { h.takes = short }},
		{name: "after its values are saved", slow: func(h *host) { h.removing = short }, old: true, during: "if1=1001 old=1", saved: true},
	} {
		t.Run(test.name, func(t *testing.T) {
			bubble(t, func(t *testing.T, h *host) {
				test.slow(h)
				if test.old {
					h.stands["old"] = "1"
				}
				var trying errgroup.Group
				h.live(t, func(a *agent) {
					trying.Go(func() error {
						_, err := a.Try(t.Context(), request("if1=1001"), time.Hour)
						return err
					})
					a.expect("before the end", test.during)
				})
				if err := trying.Wait(); !errors.Is(err, orchestrator.ErrStopped) || len(h.intent.all) > 0 != test.saved {
					t.Errorf("the error is %v; the layer is saved as %q", err, h.intent.all)
				}
				h.patience, h.takes, h.removing = 0, 0, 0
				h.live(t, func(a *agent) {
					a.expect("after the next start", "")
					if list := a.List(); len(list) > 0 || len(h.trials.all) > 0 || len(h.intent.all) > 0 {
						t.Errorf("the list is %+v; saved are %q and %q", list, h.trials.all, h.intent.all)
					}
					a.declare("if1=1002") // the layer is free
				})
			})
		})
	}
}

// TestEarlierValueIsRefused has an agent take trials back that no longer accepts an earlier value. Such a
// trial stays until it is confirmed, or an agent accepts the value again.
func TestEarlierValueIsRefused(t *testing.T) {
	for name, away := range map[string]time.Duration{"during a run": 0, "at a start": time.Hour} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, h *host) {
				h.live(t, func(a *agent) { a.declare("if1=9500 if2=2000"); a.try("if1=1001 if2=2001", time.Minute) })
				<-time.After(away)
				h.mostMTU = 9216
				h.live(t, func(a *agent) {
					a.after(time.Hour)
					a.expect("the other value is restored", "if1=1001 if2=2000")
					if _, err := a.Declare(t.Context(), request("if1=9")); !errors.Is(err, trial.ErrOnTrial) {
						t.Errorf("a change meanwhile: %v", err)
					}
					if _, err := a.Cancel(t.Context(), "agentctl"); err == nil || !strings.Contains(err.Error(), "mtu is 9500") {
						t.Errorf("Cancel: %v", err)
					}
				})
				saved := [2]map[string][]byte{maps.Clone(h.intent.all), maps.Clone(h.trials.all)}
				h.live(t, func(a *agent) {
					if _, err := a.Confirm("agentctl"); err != nil {
						t.Error(err)
					}
					a.declare("if2=2002") // the layer is free
					a.expect("confirmed", "if1=1001 if2=2002")
				})
				h.intent.all, h.trials.all, h.mostMTU = saved[0], saved[1], 0
				h.live(t, func(a *agent) {
					a.expect("accepted again", "if1=9500 if2=2000")
					a.declare("if2=2002")
				})
			})
		})
	}
}

// TestEarlierValueIsTooLarge has no trial over a value that could not be declared again, because its JSON has
// twice the bytes of the message.
func TestEarlierValueIsTooLarge(t *testing.T) {
	bubble(t, func(t *testing.T, h *host) {
		h.intent = nil // otherwise the value itself would be refused
		h.live(t, func(a *agent) {
			large := &interfaces.Interface{Name: "if1", Mtu: 1000, HostIfName: strings.Repeat(`"`, models.MaxSize/2)}
			if _, err := a.Declare(t.Context(), orchestrator.Request{Layer: "agentctl", Values: []orchestrator.Declared{{Key: prefix + "if1", Message: large}}}); err != nil {
				t.Fatal(err)
			}
			if _, err := a.Try(t.Context(), request("if1=1001"), time.Minute); !errors.Is(err, models.ErrTooLarge) || !strings.Contains(err.Error(), "if1") {
				t.Errorf("Try: %v", err)
			}
			a.expect("without a trial", "if1=1000")
		})
	})
}

// TestTooManyLayersAtTheStart cannot take a trial back, because its layer is empty and others have taken
// its place.
func TestTooManyLayersAtTheStart(t *testing.T) {
	bubble(t, func(t *testing.T, h *host) {
		other := func(a *agent, text string) {
			q := request(text)
			q.Layer = "other"
			if _, err := a.Declare(t.Context(), q); err != nil {
				t.Error(err)
			}
		}
		h.live(t, func(a *agent) {
			a.declare("if1=1000")
			a.try("if1=", time.Minute)
			other(a, "if2=2000")
		})
		<-time.After(time.Hour)
		h.layers = 1
		h.live(t, func(a *agent) {
			a.expect("while there is no place", "if2=2000")
			other(a, "if2=")
			a.after(2 * time.Second)
			a.expect("afterwards", "if1=1000")
			if list := a.List(); len(list) != 0 {
				t.Errorf("the list is %+v", list)
			}
		})
	})
}

// TestDeclareWhileATrialBegins is for the race detector: changes come just when the values of a trial
// have been applied.
func TestDeclareWhileATrialBegins(t *testing.T) {
	bubble(t, func(t *testing.T, h *host) {
		h.takes = time.Second
		h.live(t, func(a *agent) {
			var all errgroup.Group
			all.Go(func() error {
				_, err := a.Try(t.Context(), request("if1=1001"), time.Minute)
				return err
			})
			synctest.Wait()
			for range 30 {
				all.Go(func() error {
					<-time.After(h.takes)
					if _, err := a.Declare(t.Context(), request("if1=1")); !errors.Is(err, trial.ErrOnTrial) {
						t.Errorf("a change while a trial begins: %v", err)
					}
					return nil
				})
			}
			if err := all.Wait(); err != nil {
				t.Error(err)
			}
		})
	})
}
