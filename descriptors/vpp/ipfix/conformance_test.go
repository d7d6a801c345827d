package ipfix

import (
	"errors"
	"maps"
	"reflect"
	"slices"
	"testing"

	"go.fd.io/govpp/binapi/flowprobe"
	vppif "go.fd.io/govpp/binapi/interface"
	"go.fd.io/govpp/binapi/interface_types"
	"go.fd.io/govpp/binapi/ip"
	"google.golang.org/protobuf/proto"

	"github.com/keyplane/keyplane/descriptors/vpp/conn"
	"github.com/keyplane/keyplane/descriptors/vpp/internal/existing"
	"github.com/keyplane/keyplane/descriptors/vpp/internal/leftovers"
	"github.com/keyplane/keyplane/descriptors/vpp/internal/simulated"
	"github.com/keyplane/keyplane/internal/testkit"
	"github.com/keyplane/keyplane/internal/vppsim"
	"github.com/keyplane/keyplane/models"
	"github.com/keyplane/keyplane/proto/ligato/vpp/ipfix"
	"github.com/keyplane/keyplane/scheduler"
	"github.com/keyplane/keyplane/scheduler/conformance"
)

// onVPP returns a handler for a VPP with the loopbacks if1 and if2, and the VRF table 5.
func onVPP(t testing.TB, release string) (*handler, *simulated.VPP) {
	t.Helper()
	vpp := simulated.Start(t, release)
	c := vpp.Dial()
	vpp.Ask(c, &ip.IPTableAddDel{IsAdd: true, Table: ip.IPTable{TableID: 5}}, &ip.IPTableAddDelReply{})
	return &handler{Options: Options{API: c, Interfaces: existing.Loopbacks(vpp, c, "if1", "if2"), Run: func() string { return "1" }}}, vpp
}

// keeping are interfaces with one registry of leftovers.
type keeping struct {
	existing.Interfaces
	registry leftovers.Registry
}

func (k *keeping) Leftovers() *leftovers.Registry { return &k.registry }

func TestFeatureConforms(t *testing.T) {
	f := func(text string) *ipfix.FlowProbeFeature { return testkit.Parse[*ipfix.FlowProbeFeature](t, text) }
	existing.Conforms(t, func(t *testing.T, release string) scheduler.Descriptor[*ipfix.FlowProbeFeature, Meta] {
		h, _ := onVPP(t, release)
		if err := h.setParams(t.Context(), params{record: flowprobe.FLOWPROBE_RECORD_FLAG_L3, active: 10, passive: 20}); err != nil {
			t.Fatal(err)
		}
		return h.featureDescriptor()
	}, conformance.Suite[*ipfix.FlowProbeFeature, Meta]{
		Values: []scheduler.Desired[*ipfix.FlowProbeFeature]{{Value: f(`interface: "if1" ip4: true`)}, {Value: f(`interface: "if2" l2: true`)}},
		Changes: []conformance.Change[*ipfix.FlowProbeFeature]{
			{Name: "nothing", From: f(`interface: "if1" ip4: true`), To: f(`interface: "if1" ip4: true`), How: conformance.Unchanged},
			{Name: "kind", From: f(`interface: "if1" ip4: true`), To: f(`interface: "if1" ip6: true`), How: conformance.Recreated},
		},
		Invalid: []conformance.Invalid[*ipfix.FlowProbeFeature]{
			{Name: "nothing", Value: &ipfix.FlowProbeFeature{}, Fields: []string{"interface", "ip4"}},
			{Name: "two kinds", Value: f(`interface: "if1" ip4: true l2: true`), Fields: []string{"ip4"}},
		},
	})
}

// A life is a sequence of versions of a setting that exists at most once.
type life[V proto.Message] struct {
	descriptor scheduler.Descriptor[V, struct{}]
	vpp        *simulated.VPP
	page       string
	fresh      string // the page before and after the life
	steps      []step
}

// A step is a version, and VPP's page with it.
type step struct{ value, shows string }

// standing returns the value that Retrieve reports, with one declared value or none.
func standing[V proto.Message](t *testing.T, d scheduler.Descriptor[V, struct{}], declared ...V) (out V, found bool) {
	t.Helper()
	var wanted []scheduler.Desired[V]
	for _, v := range declared {
		wanted = append(wanted, scheduler.Desired[V]{Value: v})
	}
	for f, err := range conformance.Taken(d.Retrieve(t.Context(), wanted)) {
		if err != nil {
			t.Fatal(err)
		}
		if f.Foreign { // an exporter without a collector is VPP's, and nobody's
			continue
		}
		if f.OwnerUnknown != (len(declared) == 0) {
			t.Errorf("the owner is unknown: %t, with %d declared", f.OwnerUnknown, len(declared))
		}
		out, found = f.Value, true
	}
	return out, found
}

// run has each version follow the one before, and the last one go. Each verb is called twice, as
// after an answer that was lost.
func run[V proto.Message](t *testing.T, l life[V]) {
	t.Helper()
	shows := func(want string) {
		t.Helper()
		if got := l.vpp.Show(l.page); l.vpp.Sim != nil && got != want {
			t.Errorf("VPP has\n%s; expected\n%s", got, want)
		}
	}
	if v, found := standing(t, l.descriptor); found {
		t.Errorf("a new VPP has %v", v)
	}
	shows(l.fresh)
	var last V
	for i, s := range l.steps {
		v := testkit.Parse[V](t, s.value)
		for range 2 {
			if i > 0 && l.descriptor.Update == nil {
				if err := l.descriptor.Delete(t.Context(), "", last, struct{}{}); err != nil {
					t.Fatal(err)
				}
			}
			if _, err := l.descriptor.Create(t.Context(), "", v); err != nil {
				t.Fatal(err)
			}
		}
		shows(s.shows)
		if found, is := standing(t, l.descriptor, v); !is || !l.descriptor.Equivalent("", found, v) {
			t.Errorf("found %v; expected %v", found, v)
		}
		if found, is := standing(t, l.descriptor); !is || !l.descriptor.Equivalent("", found, v) {
			t.Errorf("nobody declares it, and found is %v; expected %v", found, v)
		}
		if i > 0 && l.descriptor.Equivalent("", last, v) {
			t.Errorf("%v counts as %v", last, v)
		}
		last = v
	}
	for range 2 {
		if err := l.descriptor.Delete(t.Context(), "", last, struct{}{}); err != nil {
			t.Fatal(err)
		}
	}
	if v, found := standing(t, l.descriptor); found {
		t.Errorf("left behind: %v", v)
	}
}

func TestLifeOfExporter(t *testing.T) {
	for _, release := range simulated.Releases() {
		t.Run(release, func(t *testing.T) {
			h, vpp := onVPP(t, release)
			run(t, life[*ipfix.IPFIX]{
				descriptor: h.exporterDescriptor(), vpp: vpp, page: "show ipfix exporter",
				steps: []step{
					{`collector: { address: "10.0.0.1" } source_address: "10.0.0.2"`, "collector 10.0.0.1 port 4739 source 10.0.0.2 table 0 mtu 512 interval 20\n"},
					{
						`collector: { address: "10.0.0.3" port: 9 } source_address: "10.0.0.4" vrf_id: 5 path_mtu: 1450 template_interval: 7`,
						"collector 10.0.0.3 port 9 source 10.0.0.4 table 5 mtu 1450 interval 7\n",
					},
				},
			})
		})
	}
}

func TestLifeOfParams(t *testing.T) {
	for _, release := range simulated.Releases() {
		t.Run(release, func(t *testing.T) {
			h, vpp := onVPP(t, release)
			run(t, life[*ipfix.FlowProbeParams]{
				descriptor: h.paramsDescriptor(), vpp: vpp, page: "show flowprobe params", fresh: " active: 15 passive: 120\n",
				steps: []step{
					{`record_l2: true record_l4: true active_timer: 20 passive_timer: 10`, " l2 l4 active: 20 passive: 10\n"},
					{`record_l3: true active_timer: 4294967295 passive_timer: 4294967295`, " l3 active: 15 passive: 120\n"},
					{`record_l3: true passive_timer: 2147483648`, " l3 active: 0 passive: -2147483648\n"},
				},
			})
		})
	}
}

// TestActiveTimerAfterZero changes an active timer of 0, after which VPP might die: only tables
// permit that, also after the parameters were deleted. With tables, VPP would die of the change to
// 0. An agent on another connection finds them.
func TestActiveTimerAfterZero(t *testing.T) {
	for _, release := range simulated.Releases() {
		t.Run(release, func(t *testing.T) {
			h, _ := onVPP(t, release)
			run := "1"
			h.Run = func() string { return run }
			zero, ten := testkit.Parse[*ipfix.FlowProbeParams](t, `record_l3: true`), testkit.Parse[*ipfix.FlowProbeParams](t, `record_l3: true active_timer: 10`)
			if err := h.createParams(t.Context(), paramsOf(zero)); err != nil {
				t.Fatal(err)
			}
			if err := h.createParams(t.Context(), paramsOf(ten)); !errors.Is(err, ErrStateless) {
				t.Errorf("the error is %v", err)
			}
			if err := h.deleteParams(t.Context(), "", zero, struct{}{}); err != nil {
				t.Fatal(err)
			}
			if err := h.createParams(t.Context(), paramsOf(ten)); !errors.Is(err, ErrStateless) {
				t.Errorf("after a deletion the error is %v", err)
			}

			h, _ = onVPP(t, release)
			h.Run = func() string { return run }
			v := &ipfix.FlowProbeFeature{Interface: "if1", Ip4: true}
			if err := h.createParams(t.Context(), paramsOf(ten)); err != nil {
				t.Fatal(err)
			}
			m, err := h.record(t.Context(), "", v)
			if err == nil {
				err = h.end(t.Context(), "", v, m)
			}
			err = errors.Join(err, h.createParams(t.Context(), paramsOf(ten)))
			if err != nil {
				t.Errorf("with tables: %v", err)
			}
			if err := h.createParams(t.Context(), paramsOf(zero)); !errors.Is(err, ErrStateful) {
				t.Errorf("with tables, the error of the change to 0 is %v", err)
			}
			if now, err := h.params(t.Context()); err != nil || now.active != 10 {
				t.Errorf("with tables, the active timer is %d, %v; expected 10", now.active, err)
			}
			run += "1" // VPP is connected again, and the agent knows nothing of it
			if err := h.createParams(t.Context(), paramsOf(zero)); !errors.Is(err, ErrStateful) {
				t.Errorf("on another connection, the error of the change to 0 is %v", err)
			}
			run += "1"
			err = h.setParams(t.Context(), paramsOf(zero)) // as another program
			if err := errors.Join(err, h.createParams(t.Context(), paramsOf(ten))); err != nil {
				t.Errorf("with tables, from 0: %v", err)
			}
		})
	}
}

// TestRecordingOfDeletedInterface changes the parameters after somebody has deleted a recorded
// interface, whose recording VPP keeps.
func TestRecordingOfDeletedInterface(t *testing.T) {
	for _, release := range simulated.Releases() {
		t.Run(release, func(t *testing.T) {
			h, vpp := onVPP(t, release)
			keep := keeping{Interfaces: h.Interfaces.(existing.Interfaces)}
			h.Interfaces = &keep
			to := params{record: flowprobe.FLOWPROBE_RECORD_FLAG_L3, active: 10, passive: 20}
			if err := h.setParams(t.Context(), to); err != nil {
				t.Fatal(err)
			}
			v := &ipfix.FlowProbeFeature{Interface: "if1", L2: true}
			if _, err := h.record(t.Context(), "", v); err != nil {
				t.Fatal(err)
			}
			at := interface_types.InterfaceIndex(keep.Interfaces["if1"].Index)
			vpp.Ask(vpp.Dial(), &vppif.DeleteLoopback{SwIfIndex: at}, &vppif.DeleteLoopbackReply{})
			if err := h.end(t.Context(), "", v, metaOf(v)); err != nil {
				t.Errorf("ending the recording of a deleted interface: %v", err)
			}
			delete(keep.Interfaces, "if1")
			to.passive = 30
			if err := h.setParams(t.Context(), to); err != nil {
				t.Errorf("new parameters: %v", err)
			}
			if now, err := h.params(t.Context()); err != nil || now != to {
				t.Errorf("the parameters are %+v, %v; expected %+v", now, err, to)
			}
			if all, err := h.recordings(t.Context(), everyInterface); err != nil || len(all) > 0 {
				t.Errorf("recorded are %v, %v", all, err)
			}
		})
	}
}

// TestRecordedByOthers changes the parameters while somebody else records an interface.
func TestRecordedByOthers(t *testing.T) {
	for _, release := range simulated.Releases() {
		t.Run(release, func(t *testing.T) {
			h, _ := onVPP(t, release)
			to := params{record: flowprobe.FLOWPROBE_RECORD_FLAG_L3, active: 10, passive: 20}
			err := h.setParams(t.Context(), to)
			index := h.Interfaces.All()["if2"].SwIfIndex()
			m := Meta{flowprobe.FLOWPROBE_WHICH_IP6, flowprobe.FLOWPROBE_DIRECTION_BOTH}
			if err := errors.Join(err, h.set(t.Context(), index, m, true)); err != nil {
				t.Fatal(err)
			}
			to.passive = 30
			if err := h.setParams(t.Context(), to); err == nil {
				t.Error("VPP has changed its parameters")
			}
			// The declared recording takes its place.
			v := &ipfix.FlowProbeFeature{Interface: "if2", Ip4: true}
			if _, err := h.record(t.Context(), "", v); err != nil {
				t.Error(err)
			}
			all, err := h.recordings(t.Context(), everyInterface)
			if want := map[interface_types.InterfaceIndex]Meta{index: metaOf(v)}; err != nil || !maps.Equal(all, want) {
				t.Errorf("recorded are %v, %v; expected %v", all, err, want)
			}
		})
	}
}

func TestMeaning(t *testing.T) {
	exporter := func(text string) []string {
		return models.Fields(validateExporter("", testkit.Parse[*ipfix.IPFIX](t, text)))
	}
	for text, want := range map[string][]string{
		``: {"collector.address", "source_address"},
		`collector: { address: "fd00::1" } source_address: "x"`:                                                                {"collector.address", "source_address"},
		`collector: { address: "0.0.0.0" } source_address: "10.0.0.1"`:                                                         {"collector.address"},
		`collector: { address: "10.0.0.1" port: 65534 } source_address: "10.0.0.1" path_mtu: 68 template_interval: 4294967294`: nil,
	} {
		if got := exporter(text); !slices.Equal(got, want) {
			t.Errorf("%s: the bad fields are %q; expected %q", text, got, want)
		}
	}
	if got := models.Fields(validateParams("", &ipfix.FlowProbeParams{ActiveTimer: 10})); !slices.Equal(got, []string{"record_l3"}) {
		t.Errorf("the bad fields are %q", got)
	}
	v := testkit.Parse[*ipfix.IPFIX](t, `collector: { address: "10.0.0.1/24" } source_address: "10.0.0.2/32"`)
	normal, warnings := normalizeExporter("", v)
	if normal.GetCollector().GetAddress() != "10.0.0.1" || normal.GetSourceAddress() != "10.0.0.2" || len(warnings) != 2 {
		t.Errorf("%v, %q", normal, warnings)
	}
}

// TestCommandLine reads the pages of VPP 22.02.
func TestCommandLine(t *testing.T) {
	for _, text := range []string{"unknown input", " l3 active:", " l3 active: x"} {
		if got, err := paramsIn(text); !errors.Is(err, conn.ErrProtocol) {
			t.Errorf("%q: %+v, %v", text, got, err)
		}
	}
	got, err := recordingsIn(" loop0 ip4\n DELETED (7) l2\n tap1.5 ip6\n\n other ip4\n", map[string]uint32{"loop0": 1, "tap1.5": 2})
	tx := flowprobe.FLOWPROBE_DIRECTION_TX
	want := map[interface_types.InterfaceIndex]Meta{1: {flowprobe.FLOWPROBE_WHICH_IP4, tx}, 7: {flowprobe.FLOWPROBE_WHICH_L2, tx}, 2: {flowprobe.FLOWPROBE_WHICH_IP6, tx}}
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("%v, %v; expected %v", got, err, want)
	}
	for _, text := range []string{"what", " loop0 tcp"} {
		if got, err := recordingsIn(text, nil); !errors.Is(err, conn.ErrProtocol) {
			t.Errorf("%q: %+v, %v", text, got, err)
		}
	}
}

// TestWithoutPlugin has a VPP without the plugin: nothing is recorded, and nothing can be.
func TestWithoutPlugin(t *testing.T) {
	vpp := simulated.StartWith(t, vppsim.Options{Without: []string{"flowprobe"}})
	c := vpp.Dial()
	h := &handler{Options: Options{API: c, Interfaces: existing.Loopbacks(vpp, c, "if1"), Run: func() string { return "1" }}}
	if v, found := standing(t, h.paramsDescriptor()); found {
		t.Errorf("there is %v", v)
	}
	for f, err := range conformance.Taken(h.retrieveFeatures(t.Context(), nil)) {
		t.Errorf("there is %v, %v", f, err)
	}
	if err := h.createParams(t.Context(), params{record: 1}); !errors.Is(err, scheduler.ErrUnimplemented) {
		t.Errorf("the error is %v", err)
	}
}
