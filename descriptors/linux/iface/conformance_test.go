package iface

import (
	"log/slog"
	"os"
	"path/filepath"
	"testing"

	"github.com/keyplane/keyplane/descriptors/linux/internal/drift"
	"github.com/keyplane/keyplane/descriptors/linux/keys"
	"github.com/keyplane/keyplane/descriptors/linux/netns"
	"github.com/keyplane/keyplane/internal/testkit"
	"github.com/keyplane/keyplane/scheduler"
	"github.com/keyplane/keyplane/scheduler/conformance"
)

// apart returns a handler whose own namespace and namespace red nobody else has.
func apart(t *testing.T, index Index) *handler {
	t.Helper()
	names := t.TempDir() // another one for each call
	own, other := hash("own-", names), hash("red-", names)
	dir := testkit.Netns(t, own, other)
	if err := os.Symlink(filepath.Join(dir, other), filepath.Join(names, "red")); err != nil {
		t.Fatal(err)
	}
	log := slog.New(slog.DiscardHandler)
	spaces := netns.New(netns.Options{Own: filepath.Join(dir, own), Dir: names})
	watch := drift.New(drift.Options{Spaces: spaces, Log: log, Lost: func([]string) {}})
	return &handler{index: index, marks: newMarks(nil, nil), Options: Options{
		Spaces: spaces, Watch: watch, Log: log, Label: "test", Readers: 2, TAPHost: defaultTAPHost, Flushed: func() {},
	}}
}

// known is an index of what a test says.
type known map[string]Meta

func (k known) Get(name string) (Meta, bool) { m, ok := k[name]; return m, ok }
func (k known) All() map[string]Meta         { return k }

func TestInterfaceConforms(t *testing.T) {
	a := func(more string) *value {
		return testkit.Parse[*value](t, `name: "a" type: VETH veth { peer_if_name: "z" } namespace { type: NSID reference: "red" } `+more)
	}
	var h *handler
	conformance.Run(t, conformance.Suite[*value, Meta]{
		New: func(t *testing.T) scheduler.Descriptor[*value, Meta] {
			h = apart(t, known{})
			return h.descriptor()
		},
		Parts: func(t *testing.T, base scheduler.Desired[*value], meta Meta, parts []scheduler.KeyValue) {
			h.index.(known)[base.Value.GetName()] = meta
			for _, kv := range parts {
				if _, ok := keys.ParseAddress(kv.Key); !ok {
					continue
				}
				if _, err := h.createAddress(t.Context(), kv.Key, kv.Value.(*value)); err != nil {
					t.Fatal(err)
				}
			}
		},
		Values: []scheduler.Desired[*value]{
			{Value: a(`enabled: true`)},
			{Value: testkit.Parse[*value](t, `name: "lo1" type: LOOPBACK enabled: true ip_addresses: ["10.9.0.1/24", "fd09::1/64"]`)},
			{Value: testkit.Parse[*value](t, `name: "b" type: VETH phys_address: "02fe.0000.000a" veth { peer_if_name: "y" }`)},
		},
		Changes: []conformance.Change[*value]{
			{Name: "up", From: a(``), To: a(`enabled: true`), How: conformance.Updated},
			{Name: "MTU", From: a(``), To: a(`mtu: 9000`), How: conformance.Updated},
			{Name: "largest MTU of a VETH", From: a(``), To: a(`mtu: 65535`), How: conformance.Updated},
			{Name: "address without length", From: a(`ip_addresses: "10.0.0.1/32"`), To: a(`ip_addresses: "10.0.0.1"`), How: conformance.Unchanged},
			{Name: "name of a loopback", Key: keyOf("lo1"), From: testkit.Parse[*value](t, `name: "lo1" type: LOOPBACK`),
				To: testkit.Parse[*value](t, `name: "lo1" type: LOOPBACK host_if_name: "dummy"`), How: conformance.Unchanged},
			{Name: "MAC of a loopback", Key: keyOf("lo1"), From: testkit.Parse[*value](t, `name: "lo1" type: LOOPBACK`),
				To: testkit.Parse[*value](t, `name: "lo1" type: LOOPBACK phys_address: "02:fe:00:00:00:01"`), How: conformance.Unchanged},
			{Name: "default MTU", From: a(``), To: a(`mtu: 1500`), How: conformance.Unchanged},
			{Name: "MAC", From: a(``), To: a(`phys_address: "02:fe:00:00:00:01"`), How: conformance.Updated},
			{Name: "spelling of a MAC", From: a(`phys_address: "02:fe:00:00:00:01"`), To: a(`phys_address: "02-FE-00-00-00-01"`), How: conformance.Unchanged},
			{Name: "host name", From: a(``), To: a(`host_if_name: "other"`), How: conformance.Updated},
			{Name: "link only", From: a(``), To: a(`link_only: true`), How: conformance.Recreated},
			{Name: "namespace", From: a(``), To: testkit.Parse[*value](t, `name: "a" type: VETH veth { peer_if_name: "z" }`), How: conformance.Recreated},
		},
		Invalid: []conformance.Invalid[*value]{
			{Name: "all at once", Value: testkit.Parse[*value](t, `name: "bad name" type: VETH mtu: 5 ip_addresses: "x"`),
				Fields: []string{"name", "mtu", "ip_addresses[0]", "veth.peer_if_name"}},
		},
	})
}

func TestAddressConforms(t *testing.T) {
	key := func(addr string) string { return keys.Address{Interface: "lo1", Source: keys.Static, Addr: addr}.Key() }
	v := func(addr, vrf string) *value {
		return &value{Name: "lo1", IpAddresses: []string{addr}, VrfMasterInterface: vrf}
	}
	conformance.Run(t, conformance.Suite[*value, struct{}]{
		New: func(t *testing.T) scheduler.Descriptor[*value, struct{}] {
			index := known{}
			h := apart(t, index)
			lo := testkit.Parse[*value](t, `name: "lo1" type: LOOPBACK enabled: true namespace { type: NSID reference: "red" }`)
			meta, err := h.create(t.Context(), keyOf("lo1"), lo)
			if err != nil {
				t.Fatal(err)
			}
			index["lo1"] = meta
			return h.addressDescriptor()
		},
		Values: []scheduler.Desired[*value]{
			{Key: key("10.0.0.1/24"), Value: v("10.0.0.1/24", "")},
			{Key: key("fd00::1/64"), Value: v("fd00::1/64", "")},
		},
		Changes: []conformance.Change[*value]{
			{Name: "in a VRF", Key: key("10.0.0.1/24"), From: v("10.0.0.1/24", ""), To: v("10.0.0.1/24", "blue"), How: conformance.Recreated},
			{Name: "of another host", Key: key("fd00::1/64"), From: v("fd00::1/64 dadfailed", ""), To: v("fd00::1/64", ""), How: conformance.Updated},
			{Name: "the same", Key: key("10.0.0.1/24"), From: v("10.0.0.1/24", ""), To: v("10.0.0.1/24", ""), How: conformance.Unchanged},
		},
		Invalid: []conformance.Invalid[*value]{
			{Name: "no address", Key: keys.Address{Interface: "lo1", Source: keys.Static}.Key(), Value: v("", "")},
		},
	})
}
