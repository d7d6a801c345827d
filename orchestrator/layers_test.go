package orchestrator_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/keyplane/keyplane/kvdbsync"
	"github.com/keyplane/keyplane/models"
	"github.com/keyplane/keyplane/orchestrator"
	"github.com/keyplane/keyplane/proto/ligato/linux/interfaces"
	"github.com/keyplane/keyplane/scheduler"
)

// declared reads "if1=1500 if2=": a message, or a removal.
func declared(text string) (out []orchestrator.Declared) {
	for f := range strings.FieldsSeq(text) {
		name, mtu, _ := strings.Cut(f, "=")
		d := orchestrator.Declared{Key: prefix + name}
		if mtu != "" {
			v := &interfaces.Interface{Name: name}
			fmt.Sscan(mtu, &v.Mtu)
			d.Message = v
		}
		out = append(out, d)
	}
	return out
}

// layers lists the sources that Health shows, with the keys of layers: "high:1 etcd".
func (r *rig) layers() string {
	var out []string
	for _, h := range r.orch.Health() {
		if r.inputs[h.Source] != nil {
			out = append(out, h.Source)
			continue
		}
		out = append(out, fmt.Sprintf("%s:%d", h.Source, h.Keys))
	}
	return strings.Join(out, " ")
}

// A declaring is a request, the state after it and its error.
type declaring struct {
	layer, values   string
	replace, revert bool
	stands, layers  string
	err             string
}

func (r *rig) declare(t *testing.T, steps []declaring) {
	t.Helper()
	for _, s := range steps {
		_, err := r.orch.Declare(t.Context(), orchestrator.Request{Layer: s.layer, Values: declared(s.values), Replace: s.replace, Revert: s.revert})
		if (err == nil) != (s.err == "") || err != nil && !strings.Contains(err.Error(), s.err) {
			t.Errorf("%+v: error %v", s, err)
		}
		if got := r.standing(); got != s.stands {
			t.Errorf("%+v: stands %q", s, got)
		}
		if got := r.layers(); s.layers != "" && got != s.layers {
			t.Errorf("%+v: layers %q", s, got)
		}
	}
}

func TestLayersComeAndGo(t *testing.T) {
	bubble(t, map[string]int{"etcd": 2}, "old=1", func(t *testing.T, r *rig) {
		r.give("etcd", listed("if1=1"))
		r.declare(t, []declaring{
			{layer: "a", values: "if1=9 if2=2", stands: "if1=1 if2=2", layers: "etcd a:2"},
			{layer: "high", values: "if1=7", stands: "if1=7 if2=2", layers: "high:1 etcd a:2"},
			{layer: "b", values: "if2=3 if3=3", stands: "if1=7 if2=2 if3=3", layers: "high:1 etcd a:2 b:2"},
			{layer: "c", values: "if4=4", stands: "if1=7 if2=2 if3=3", err: "too many data sources: 3 have declared values; expected at most 3"},
			{layer: "a", replace: true, values: "if5=5", stands: "if1=7 if2=3 if3=3 if5=5", layers: "high:1 etcd a:1 b:2"},
			{layer: "a", values: "if5=", stands: "if1=7 if2=3 if3=3", layers: "high:1 etcd b:2"},
			{layer: "c", values: "if4=4", stands: "if1=7 if2=3 if3=3 if4=4", layers: "high:1 etcd b:2 c:1"},
			{layer: "high", replace: true, stands: "if1=1 if2=3 if3=3 if4=4", layers: "etcd b:2 c:1"},
			{layer: "b", values: "if2=99999 if3=4", stands: "if1=1 if2=3 if3=4 if4=4", err: "if2 (VALIDATE): invalid value: mtu is 99999; expected at most 9216"},
		})
		for name, want := range map[string]string{
			"etcd": `"etcd" is the name of a store`, "redis": `"redis" is the name of a store`, "": "expected up to 63",
			"a/b": "expected up to 63", "-x": "expected up to 63", strings.Repeat("a", 64): "expected up to 63",
		} {
			_, err := r.orch.Declare(t.Context(), orchestrator.Request{Layer: name})
			if !errors.Is(err, orchestrator.ErrLayerName) || !strings.Contains(err.Error(), want) {
				t.Errorf("layer %q: %v", name, err)
			}
		}
	})
}

// What the next start would refuse for its size is refused at once. The JSON of quotes has twice their bytes.
func TestALargeValueAndARestart(t *testing.T) {
	large := &interfaces.Interface{Name: "if1", HostIfName: strings.Repeat(`"`, models.MaxSize/2)}
	request := func(layer string) orchestrator.Request {
		return orchestrator.Request{Layer: layer, Values: []orchestrator.Declared{{Key: prefix + "if1", Message: large}}}
	}
	life(t, nil, "", newNotebook(), func(t *testing.T, r *rig) {
		if _, err := r.orch.Declare(t.Context(), request("a")); !errors.Is(err, models.ErrTooLarge) || !strings.Contains(err.Error(), "if1 (VALIDATE): value too large: 41") {
			t.Errorf("Declare: %v", err)
		}
		if _, err := r.orch.Declare(t.Context(), request("short")); err != nil {
			t.Errorf("Declare in a layer that is not saved: %v", err)
		}
	})
}

func TestAValueIsCheckedAsItsJSONWouldBe(t *testing.T) {
	bubble(t, nil, "", func(t *testing.T, r *rig) {
		for _, c := range []struct {
			value orchestrator.Declared
			want  error
		}{
			{orchestrator.Declared{Key: prefix + "if1", Message: &interfaces.Interface{Name: "if2"}}, models.ErrKeyMismatch},
			{orchestrator.Declared{Key: prefix + "if1", JSON: []byte(`{"name":"if2"}`)}, models.ErrKeyMismatch},
			{orchestrator.Declared{Key: prefix + "if1", Message: &interfaces.Interface{Name: "if1", HostIfName: strings.Repeat("x", models.MaxSize)}}, models.ErrTooLarge},
			{orchestrator.Declared{Key: "config/other", Message: &interfaces.Interface{Name: "if1"}}, models.ErrKeyMismatch},
			{orchestrator.Declared{Key: "config/other", JSON: []byte(`{}`)}, scheduler.ErrUnimplemented},
			{orchestrator.Declared{Key: prefix + "if1", JSON: []byte(`{`)}, models.ErrNotJSON},
		} {
			_, err := r.orch.Declare(t.Context(), orchestrator.Request{Layer: "a", Values: []orchestrator.Declared{c.value}, Revert: true})
			if !errors.Is(err, c.want) {
				t.Errorf("%.100v: %v; want %v", c.value, err, c.want)
			}
		}
		if _, err := r.orch.Declare(t.Context(), orchestrator.Request{Layer: "a", Values: []orchestrator.Declared{
			{Key: prefix + "if1", Message: &interfaces.Interface{Name: "if1", HostIfName: "a\nb"}},
		}}); err == nil || !strings.Contains(err.Error(), "without control characters") {
			t.Errorf("a control character: %v", err)
		}
	})
}

// An all-or-nothing request that fails leaves no trace: not in the network, the layer or
// the Memory.
func TestAllOrNothing(t *testing.T) {
	memory := newNotebook()
	life(t, map[string]int{"etcd": 2}, "", memory, func(t *testing.T, r *rig) {
		r.fails = map[string]bool{"if4": true}
		r.give("etcd", listed("if1=1"))
		r.declare(t, []declaring{
			{layer: "a", revert: true, values: "if2=2", stands: "if1=1 if2=2", layers: "etcd a:1"},
			{layer: "a", revert: true, values: "if3=3 if2=99999", stands: "if1=1 if2=2", layers: "etcd a:1", err: "if2 (VALIDATE)"},
			{layer: "a", revert: true, values: "if2=9 if3=3 if4=4", stands: "if1=1 if2=2", layers: "etcd a:1", err: "if4 (CREATE): no space left"},
			{layer: "b", revert: true, values: "if4=4", stands: "if1=1 if2=2", layers: "etcd a:1", err: "no space left"},
			{layer: "a", revert: true, replace: true, values: "if3=3 if4=4", stands: "if1=1 if2=2", layers: "etcd a:1", err: "no space left"},
			{layer: "b", revert: true, values: "if1=9", stands: "if1=1 if2=2", layers: "etcd a:1 b:1"}, // etcd counts more
			{layer: "b", revert: true, values: "if1=", stands: "if1=1 if2=2", layers: "etcd a:1"},
			{layer: "high", revert: true, values: "if1=9", stands: "if1=9 if2=2"},
			{layer: "high", revert: true, values: "if1=", stands: "if1=1 if2=2", layers: "etcd a:1"},
			{layer: "a", values: "if4=4", stands: "if1=1 if2=2", layers: "etcd a:2", err: "no space left"},
			{layer: "a", values: "if4=", stands: "if1=1 if2=2", layers: "etcd a:1"},
		})
		memory.full = errors.New("disk full")
		r.declare(t, []declaring{
			{layer: "a", revert: true, values: "if2=8 if3=3", stands: "if1=1 if2=2", layers: "etcd a:1", err: "disk full"},
			{layer: "short", revert: true, values: "if3=3", stands: "if1=1 if2=2 if3=3", layers: "etcd a:1 short:1"},
		})
		memory.full = nil
	})
	life(t, map[string]int{"etcd": 2}, "", memory, func(t *testing.T, r *rig) {
		r.give("etcd", listed("if1=1"))
		if got := r.standing(); got != "if1=1 if2=2" {
			t.Errorf("after a restart %q stand", got)
		}
	})
}

// Before the first transaction such a request waits for it; its failure does not undo the
// values of others.
func TestAllOrNothingDuringTheStart(t *testing.T) {
	bubble(t, map[string]int{"etcd": 2}, "old=1", func(t *testing.T, r *rig) {
		r.fails = map[string]bool{"if4": true}
		begun := time.Now()
		r.declare(t, []declaring{{layer: "a", revert: true, values: "if3=3 if4=4", stands: "old=1", layers: "etcd", err: "no space left"}})
		if time.Since(begun) != 100*time.Millisecond {
			t.Errorf("answered after %s", time.Since(begun))
		}
		r.declare(t, []declaring{
			{layer: "a", revert: true, values: "if3=3", stands: "if3=3 old=1"},
			{layer: "a", revert: true, values: "if3= if4=4", stands: "if3=3 old=1", err: "no space left"},
			{layer: "a", revert: true, values: "old=5 if4=4", stands: "if3=3 old=1", err: "no space left"},
			{layer: "a", revert: true, values: "old=5 if4=4", stands: "if3=3 old=1", err: "no space left"},
		})
		r.give("etcd", listed("if1=1"))
		r.declare(t, []declaring{{layer: "a", revert: true, values: "if3=", stands: "if1=1"}})
	})
}

// Without a store, the first request that succeeds makes what programs declare the whole desired
// state. One that fails leaves the network of an earlier run, even what it has changed there.
func TestAllOrNothingAlone(t *testing.T) {
	memory := newNotebook()
	for _, test := range []struct {
		name  string
		full  error // of the memory
		steps []declaring
		verbs int
	}{
		{name: "it fails", steps: []declaring{
			{layer: "a", revert: true, values: "if4=4", stands: "if1=1 old=1", layers: "", err: "no space left"},
		}},
		{name: "it fails twice, and changes what stands", steps: []declaring{
			{layer: "a", revert: true, values: "if1=5 if4=4", stands: "if1=1 old=1", err: "no space left"},
			{layer: "a", revert: true, values: "if1=5 if4=4", stands: "if1=1 old=1", err: "no space left"},
			{layer: "b", values: "if2=2", stands: "if2=2"},
		}, verbs: 7},
		{name: "it is what stands", steps: []declaring{
			{layer: "a", revert: true, values: "if1=1 old=1", stands: "if1=1 old=1", layers: "a:2"},
		}},
		{name: "a part of what stands", steps: []declaring{
			{layer: "a", revert: true, values: "if1=1", stands: "if1=1", layers: "a:1"},
		}, verbs: 1},
		{name: "after a failure", steps: []declaring{
			{layer: "a", revert: true, values: "if4=4", stands: "if1=1 old=1", err: "no space left"},
			{layer: "a", revert: true, values: "if1=1 if2=2", stands: "if1=1 if2=2", layers: "a:2"},
		}, verbs: 2},
		{name: "nothing", steps: []declaring{
			{layer: "a", revert: true, stands: "if1=1 old=1"},
			{layer: "a", revert: true, values: "if1=", stands: "if1=1 old=1"},
		}},
		{name: "it cannot be saved", full: errors.New("disk full"), steps: []declaring{
			{layer: "a", revert: true, values: "if1=5 old=1 if2=2", stands: "if1=1 old=1", err: "disk full"},
			{layer: "short", revert: true, values: "old=1", stands: "old=1"},
		}, verbs: 5},
	} {
		t.Run(test.name, func(t *testing.T) {
			clear(memory.keys)
			memory.full = test.full
			life(t, nil, "if1=1 old=1", memory, func(t *testing.T, r *rig) {
				<-time.After(time.Second)
				r.fails = map[string]bool{"if4": true}
				r.declare(t, test.steps)
				if r.verbs != test.verbs {
					t.Errorf("%d verbs, want %d", r.verbs, test.verbs)
				}
			})
		})
	}
}

// What saved layers declare is applied before a request that comes at once, and does not fail with it.
func TestAllOrNothingBesideSavedLayers(t *testing.T) {
	memory := newNotebook()
	life(t, nil, "", memory, func(t *testing.T, r *rig) {
		<-time.After(time.Second)
		r.declare(t, []declaring{{layer: "a", values: "if1=1", stands: "if1=1"}})
	})
	life(t, nil, "old=1", memory, func(t *testing.T, r *rig) {
		r.fails = map[string]bool{"if4": true}
		r.declare(t, []declaring{{layer: "b", revert: true, values: "if4=4", stands: "if1=1", err: "no space left"}})
	})
}

// Several requests wait for the first transaction, and nothing is busy meanwhile.
func TestSeveralAllOrNothingDuringTheStart(t *testing.T) {
	bubble(t, map[string]int{"etcd": 2}, "", func(t *testing.T, r *rig) {
		var all errgroup.Group
		for _, values := range []string{"if1=1", "if2=2", "if3=3"} {
			all.Go(func() error {
				_, err := r.orch.Declare(t.Context(), orchestrator.Request{Layer: "a", Values: declared(values), Revert: true})
				return err
			})
		}
		if err := all.Wait(); err != nil || r.standing() != "if1=1 if2=2 if3=3" {
			t.Errorf("%v, and %q stands", err, r.standing())
		}
	})
}

// Without a store, what programs declare is the whole desired state.
func TestLayersAlone(t *testing.T) {
	memory := newNotebook()
	life(t, nil, "old=1", memory, func(t *testing.T, r *rig) {
		<-time.After(time.Second)
		r.declare(t, []declaring{
			{layer: "a", values: "if1=1", stands: "if1=1"},
			{layer: "short", values: "if2=2", stands: "if1=1 if2=2"},
		})
		_, err := r.orch.Declare(t.Context(), orchestrator.Request{Layer: "high", Values: []orchestrator.Declared{
			{Key: prefix + "if1", JSON: []byte(`{"name":"if1","mtu":7}`), Labels: map[string]string{"from": "test"}},
			{Key: prefix + "if3", Message: &interfaces.Interface{Name: "if3"}, Labels: map[string]string{"from": "test"}},
		}})
		if err != nil {
			t.Error(err)
		}
		r.declare(t, []declaring{{layer: "high", values: "if3=3", stands: "if1=7 if2=2 if3=3"}}) // without labels
	})
	life(t, nil, "if1=7 if2=2 if3=3", memory, func(t *testing.T, r *rig) {
		<-time.After(time.Second)
		if got := r.standing() + ", " + r.layers(); got != "if1=7 if3=3, high:2 a:1" {
			t.Errorf("after a restart: %s", got)
		}
		all, err := r.orch.Effective(t.Context())
		if err != nil || len(all) != 2 {
			t.Fatal(all, err)
		}
		one, err := r.orch.Effective(t.Context(), prefix+"if1", prefix+"if9", prefix+"if1")
		if err != nil || len(one) != 1 || one[0].Source != "high" || one[0].Labels["from"] != "test" || one[0].Key != all[0].Key {
			t.Errorf("%+v, %v", one, err)
		}
		if all[1].Labels != nil {
			t.Errorf("labels that were declared away are back: %v", all[1].Labels)
		}
		r.declare(t, []declaring{{layer: "high", replace: true, stands: "if1=1"}, {layer: "a", replace: true, stands: ""}})
	})
	if len(memory.keys) != 0 {
		t.Errorf("nothing is declared, but saved is %q", memory.keys)
	}
}

// A value of a layer that an older agent has refused, and this one accepts, is not newer than what follows it.
func TestARefusedValueOfALayerIsAcceptedLater(t *testing.T) {
	memory := newNotebook()
	life(t, nil, "", memory, func(t *testing.T, r *rig) {
		r.declare(t, []declaring{{layer: "a", values: "if1=9500", err: "at most 9216"}})
	})
	lifeOf(t, 10000, nil, "", memory, func(t *testing.T, r *rig) {
		r.steps(t, []step{{after: second, stands: "if1=9500"}})
		r.declare(t, []declaring{{layer: "a", values: "if1=1500", stands: "if1=1500"}})
	})
	lifeOf(t, 10000, nil, "if1=1500", memory, func(t *testing.T, r *rig) {
		r.steps(t, []step{{after: second, stands: "if1=1500"}})
		r.declare(t, []declaring{{layer: "a", values: "if1=", stands: ""}})
	})
	if len(memory.keys) != 0 {
		t.Errorf("nothing is declared, but saved is %q", memory.keys)
	}
}

// An empty key is refused before it is saved. One that an earlier version has saved harms no other key.
func TestAnEmptyKey(t *testing.T) {
	memory := newNotebook()
	both := map[string]int{"etcd": 1, "grpc": 2}
	life(t, both, "", memory, func(t *testing.T, r *rig) {
		r.give("etcd", listed("if1=1"))
		values := append(declared("if2=2"), orchestrator.Declared{JSON: []byte("{}")})
		if _, err := r.orch.Declare(t.Context(), orchestrator.Request{Layer: "a", Values: values}); !errors.Is(err, scheduler.ErrMisuse) || !strings.Contains(err.Error(), "value 2") {
			t.Errorf("Declare: %v", err)
		}
		for _, do := range []func(context.Context, []kvdbsync.Pair) (*scheduler.Record, error){r.local.Apply, r.local.Replace} {
			if _, err := do(t.Context(), []kvdbsync.Pair{{Value: []byte("{}")}}); !errors.Is(err, scheduler.ErrMisuse) {
				t.Errorf("a Local: %v", err)
			}
		}
		r.steps(t, []step{{stands: "if1=1"}})
	})
	memory.keys["layer/a\x00r"] = []byte("{}")
	life(t, both, "", memory, func(t *testing.T, r *rig) {
		r.steps(t, []step{{"etcd", listed("if1=1 if3=3"), second, "if1=1 if3=3"}})
	})
	if _, stays := memory.keys["layer/a\x00r"]; stays {
		t.Error("the empty key stays saved")
	}
}
