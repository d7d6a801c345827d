package iface

import (
	"fmt"
	"slices"
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/keyplane/keyplane/descriptors/vpp/internal/simulated"
	"github.com/keyplane/keyplane/descriptors/vpp/keys"
	"github.com/keyplane/keyplane/internal/testkit"
	"github.com/keyplane/keyplane/models"
	"github.com/keyplane/keyplane/proto/ligato/vpp/interfaces"
	"github.com/keyplane/keyplane/scheduler"
	"github.com/keyplane/keyplane/scheduler/conformance"
)

func TestHowItReceivesIsChecked(t *testing.T) {
	h := newHandler(Options{}, nil)
	for text, want := range map[string][]string{
		`type: SOFTWARE_LOOPBACK rx_modes: [{ mode: POLLING default_mode: true }, { queue: 0 mode: INTERRUPT }, { queue: 1 mode: DEFAULT }] rx_placements: [{ queue: 0 }, { queue: 1 }]`: nil,
		`type: SOFTWARE_LOOPBACK rx_modes: [{}, { mode: 9 queue: 1 }, { mode: POLLING queue: 1 }, { mode: POLLING default_mode: true }, { mode: POLLING default_mode: true queue: 1 }]`: {
			"rx_modes[0].mode", "rx_modes[1].mode", "rx_modes[2].queue", "rx_modes[4].default_mode",
		},
		`type: DPDK rx_modes: [{ mode: POLLING }, { queue: 1 mode: DEFAULT }, { queue: 2 mode: INTERRUPT }]`: {"rx_modes[2].mode"},
		`type: DPDK rx_placements: [{ queue: 1 }, { queue: 2 }, { queue: 1 main_thread: true }]`:             {"rx_placements[2].queue"},
	} {
		v := testkit.Parse[*interfaces.Interface](t, `name: "if1" `+text)
		if got := models.Fields(h.validate("", v)); !slices.Equal(got, want) {
			t.Errorf("%s: wrong are %q, want %q", text, got, want)
		}
	}
}

// withTAPs has two TAPs stand.
func withTAPs[V proto.Message](t *testing.T, of func(h *handler) scheduler.Descriptor[V, struct{}]) func(h *handler) scheduler.Descriptor[V, struct{}] {
	simulated.NeedTAPs(t)
	return func(h *handler) scheduler.Descriptor[V, struct{}] {
		for _, name := range []string{"tap1", "tap2"} {
			meta, err := h.create(t.Context(), "", testkit.Parse[*interfaces.Interface](t, fmt.Sprintf("name: %q type: TAP enabled: true tap: {}", name)))
			if err != nil {
				t.Fatal(err)
			}
			h.index.(links)[name] = meta
		}
		return of(h)
	}
}

func TestRxModesConform(t *testing.T) {
	m := func(name, modes string) *interfaces.Interface {
		return testkit.Parse[*interfaces.Interface](t, fmt.Sprintf("name: %q type: TAP rx_modes: [%s]", name, modes))
	}
	one, other := keys.Interface("tap1").RxModes(), keys.Interface("tap2").RxModes()
	from := m("tap1", "{ mode: POLLING }")
	to := func(name, modes string, how conformance.How) conformance.Change[*interfaces.Interface] {
		return conformance.Change[*interfaces.Interface]{Name: name, Key: one, From: from, To: m("tap1", modes), How: how}
	}
	onEach(t, withTAPs(t, (*handler).rxModeDescriptor), conformance.Suite[*interfaces.Interface, struct{}]{
		Values: []scheduler.Desired[*interfaces.Interface]{
			{Key: one, Value: m("tap1", "{ mode: POLLING default_mode: true }, { mode: INTERRUPT }")}, {Key: other, Value: m("tap2", "{ mode: ADAPTIVE }")},
		},
		Changes: []conformance.Change[*interfaces.Interface]{
			to("another mode", "{ mode: ADAPTIVE }", conformance.Updated),
			to("of all queues", "{ mode: POLLING default_mode: true }", conformance.Updated),
			to("a default besides", "{ mode: POLLING }, { mode: DEFAULT default_mode: true }", conformance.Updated),
			to("the same", "{ queue: 0 mode: POLLING }", conformance.Unchanged),
		},
	})
}

func TestRxPlacementConforms(t *testing.T) {
	testkit.Need(t, "a VPP with workers, or a simulated one", !slices.Contains(simulated.Releases(), simulated.Real))
	p := func(text string) *interfaces.Interface_RxPlacement {
		return testkit.Parse[*interfaces.Interface_RxPlacement](t, text)
	}
	one, other := keys.Interface("tap1").RxPlacement(0), keys.Interface("tap2").RxPlacement(0)
	onEach(t, withTAPs(t, (*handler).rxPlacementDescriptor), conformance.Suite[*interfaces.Interface_RxPlacement, struct{}]{
		Values: []scheduler.Desired[*interfaces.Interface_RxPlacement]{{Key: one, Value: p("worker: 1")}, {Key: other, Value: p("main_thread: true")}},
		Changes: []conformance.Change[*interfaces.Interface_RxPlacement]{
			{Name: "worker", Key: one, From: p("worker: 1"), To: p(""), How: conformance.Updated},
			{Name: "main thread", Key: one, From: p("worker: 1"), To: p("worker: 1 main_thread: true"), How: conformance.Updated},
			{Name: "no worker", Key: one, From: p("main_thread: true"), To: p("main_thread: true worker: 1"), How: conformance.Unchanged},
		},
	})
}
