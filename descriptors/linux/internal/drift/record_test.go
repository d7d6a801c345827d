package drift

import (
	"net"
	"net/netip"
	"slices"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/keyplane/keyplane/descriptors/linux/internal/kernel"
)

func TestCheck(t *testing.T) {
	ns := kernel.ID{Ino: 1}
	mac := net.HardwareAddr{2, 0, 0, 0, 0, 1}
	veth := kernel.Link{Index: 3, Name: "veth1", Up: true, MTU: 1500, MAC: mac, Master: 9}
	addr := kernel.Addr{Link: 3, Prefix: netip.MustParsePrefix("10.0.0.1/24")}
	route := kernel.Route{Link: 3, Dst: netip.MustParsePrefix("10.1.0.0/16"), Table: 254, Protocol: kernel.Protocol}
	neigh := kernel.Neighbour{Link: 3, IP: netip.MustParseAddr("10.0.0.2"), MAC: mac, Protocol: kernel.Protocol}
	moved := neigh
	moved.MAC = net.HardwareAddr{2, 0, 0, 0, 0, 2}
	with := func(change func(*kernel.Link)) kernel.Link { l := veth; change(&l); return l }
	foreign := route
	foreign.Protocol = unix.RTPROT_STATIC

	tests := []struct {
		name    string
		event   kernel.Event
		lost    []string
		changed bool
		left    int // objects
	}{
		{"same link", kernel.Event{What: veth}, nil, false, 5},
		{"link gone", kernel.Event{Gone: true, What: veth}, []string{"link"}, false, 0},
		{"link down", kernel.Event{What: with(func(l *kernel.Link) { l.Up = false })}, nil, true, 5},
		{"link renamed", kernel.Event{What: with(func(l *kernel.Link) { l.Name = "x" })}, nil, true, 5},
		{"other MTU", kernel.Event{What: with(func(l *kernel.Link) { l.MTU = 9000 })}, nil, true, 5},
		{"other MAC", kernel.Event{What: with(func(l *kernel.Link) { l.MAC = nil })}, nil, true, 5},
		{"out of its VRF", kernel.Event{What: with(func(l *kernel.Link) { l.Master = 0 })}, []string{"member"}, false, 4},
		{"foreign link", kernel.Event{Gone: true, What: kernel.Link{Index: 4}}, nil, false, 5},
		{"address there", kernel.Event{What: addr}, nil, false, 5},
		{"address gone", kernel.Event{Gone: true, What: addr}, []string{"addr"}, false, 4},
		{"route there", kernel.Event{What: []kernel.Route{route}}, nil, false, 5},
		{"route behind another", kernel.Event{What: []kernel.Route{foreign, route}}, nil, false, 5},
		{"route gone", kernel.Event{Gone: true, What: []kernel.Route(nil)}, []string{"route"}, false, 4},
		{"another route in its place", kernel.Event{What: []kernel.Route{foreign}}, []string{"route"}, false, 4},
		{"neighbour there", kernel.Event{What: neigh}, nil, false, 5},
		{"neighbour of another MAC", kernel.Event{What: moved}, []string{"neigh"}, false, 4},
		{"neighbour gone", kernel.Event{Gone: true, What: neigh}, []string{"neigh"}, false, 4},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			b := newRecord()
			b.add(Interface(ns, 3), Entry{Key: "link", Name: "veth1", State: Up, MTU: 1500, MAC: mac.String()})
			b.add(Membership(ns, 3), Entry{Key: "member", Master: 9})
			b.add(Address(ns, addr), Entry{Key: "addr"})
			b.add(Route(ns, route), Entry{Key: "route", Link: 3, Route: route})
			b.add(Neighbour(ns, neigh), Entry{Key: "neigh", MAC: mac.String()})
			o := objectOf(ns, tt.event.What)
			if _, ok := tt.event.What.([]kernel.Route); ok {
				o = Route(ns, route)
			}
			v := b.check(o, tt.event)
			lost := b.removeLost(v.lost)
			if !slices.Equal(lost, tt.lost) || v.changed != tt.changed || len(b.objects) != tt.left {
				t.Errorf("lost %v, changed %v, %d left, want %v, %v, %d", lost, v.changed, len(b.objects), tt.lost, tt.changed, tt.left)
			}
			if b.count[ns] != tt.left {
				t.Errorf("counts %d in the namespace, has %d", b.count[ns], tt.left)
			}
		})
	}
}

// A link that is kept up may not be down, nor one that is kept down up.
func TestUpAndDown(t *testing.T) {
	for _, kept := range []LinkState{Up, Down} {
		for _, up := range []bool{true, false} {
			b, o := newRecord(), Interface(kernel.ID{Ino: 1}, 3)
			b.add(o, Entry{Key: "link", State: kept})
			if v := b.check(o, kernel.Event{What: kernel.Link{Index: 3, Up: up}}); v.changed != (kept != StateOf(up)) {
				t.Errorf("kept in state %d, and the link is up: %v: %+v", kept, up, v)
			}
		}
	}
}

// Unmanaged attributes may have any value.
func TestUnmanagedAttributesAreIgnored(t *testing.T) {
	ns := kernel.ID{Ino: 1}
	b := newRecord()
	b.add(Interface(ns, 3), Entry{Key: "link"})
	if v := b.check(Interface(ns, 3), kernel.Event{What: kernel.Link{Index: 3, Name: "any", MTU: 70}}); !v.clean() {
		t.Errorf("%+v", v)
	}
}

// Each event is about one route: only that of the agent, or one that takes the place of another, matters.
func TestEventsInThePlaceOfARoute(t *testing.T) {
	ns := kernel.ID{Ino: 1}
	ours := kernel.Route{Link: 3, Dst: netip.MustParsePrefix("10.1.0.0/16"), Table: 254, Protocol: kernel.Protocol}
	theirs, blackhole := ours, kernel.Route{Dst: ours.Dst, Table: 254, Protocol: unix.RTPROT_BOOT, Type: unix.RTN_BLACKHOLE}
	theirs.Protocol, theirs.Gateway = unix.RTPROT_STATIC, netip.MustParseAddr("10.0.0.9")
	added, behind := kernel.Event{What: theirs}, kernel.Event{What: theirs, Behind: true}
	removed, lost := kernel.Event{What: theirs, Gone: true}, kernel.Event{What: ours, Gone: true}
	replaced := kernel.Event{What: blackhole, Replaces: true}
	otherTOS := kernel.Event{What: kernel.Route{Dst: ours.Dst, Table: 254, TOS: 8}, Replaces: true}
	tests := []struct {
		name    string
		events  []kernel.Event
		matters bool
		loss    Loss
	}{
		{"beside", []kernel.Event{behind, removed, behind, removed}, false, Loss{}},
		{"before", []kernel.Event{added, removed}, false, Loss{Behind: true}},
		{"ours again", []kernel.Event{{What: ours}}, false, Loss{}},
		{"removed", []kernel.Event{lost}, true, Loss{}},
		{"removed beside another", []kernel.Event{behind, lost}, true, Loss{}},
		{"replaced", []kernel.Event{replaced}, true, Loss{Taker: blackhole}},
		{"replaced after the removal", []kernel.Event{behind, lost, replaced}, true, Loss{}},
		{"another type of service", []kernel.Event{otherTOS}, false, Loss{}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			r, at, matters := newRecord(), Route(ns, ours), false
			r.add(at, Entry{Key: "route", Link: 3, Route: ours})
			for _, e := range tt.events {
				matters = r.note(objectOf(ns, e.What), e) || matters
			}
			got, ok := r.loss(at, "route")
			if matters != tt.matters || !ok || got != tt.loss {
				t.Errorf("matters %v, loss %+v, %v; want %v, %+v", matters, got, ok, tt.matters, tt.loss)
			}
			lost, _ := r.confirm(at, kernel.Event{What: []kernel.Route{theirs}})
			if got, ok := r.loss(at, "route"); !slices.Equal(lost, []string{"route"}) || !ok || got != tt.loss {
				t.Errorf("after the loss of %v: %+v, %v", lost, got, ok)
			}
			if _, ok := r.loss(at, "other"); ok {
				t.Error("a loss of another key")
			}
		})
	}
}

// A link in a VRF of the agent that its value does not name has changed. Another master is a matter of others.
func TestVRFThatIsNotDeclared(t *testing.T) {
	ns := kernel.ID{Ino: 1}
	const vrf, bridge = 9, 8
	for _, declared := range []bool{false, true} {
		for _, master := range []int{0, vrf, bridge} {
			r := newRecord()
			r.add(Interface(ns, 3), Entry{Key: "link"})
			r.add(VRFRules(ns, vrf), Entry{Key: "rules"})
			if declared {
				r.add(Membership(ns, 3), Entry{Key: "member", Master: vrf})
			}
			f := r.check(Interface(ns, 3), kernel.Event{What: kernel.Link{Index: 3, Master: master}})
			if f.changed != (!declared && master == vrf) || (len(f.lost) == 1) != (declared && master != vrf) {
				t.Errorf("declared %v, master %d: %+v", declared, master, f)
			}
		}
	}
}
