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
	elsewhere, rerouted := route, route
	elsewhere.Link, rerouted.Gateway = 4, netip.MustParseAddr("10.0.0.9")

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
		{"route there", kernel.Event{What: route}, nil, false, 5},
		{"route gone", kernel.Event{Gone: true, What: route}, []string{"route"}, false, 4},
		{"route replaced", kernel.Event{What: foreign}, []string{"route"}, false, 4},
		{"route by another gateway", kernel.Event{What: rerouted}, []string{"route"}, false, 4},
		{"another's route gone", kernel.Event{Gone: true, What: elsewhere}, nil, false, 5},
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
			v := b.check(objectOf(ns, tt.event.What), tt.event)
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
