package drift

import (
	"net"
	"net/netip"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/sys/unix"

	"github.com/keyplane/keyplane/descriptors/linux/internal/kernel"
)

// Another program removes what a verb has just written, before the verb has recorded it. The loss is reported all the same.
// What went before the verb began is not read again.
func TestLostBeforeItIsRecorded(t *testing.T) {
	ns, mac := kernel.ID{Ino: 2}, net.HardwareAddr{2, 0, 0, 0, 0, 1}
	event := func(what any) kernel.Event { return kernel.Event{What: what} }
	gone := func(what any) kernel.Event { return kernel.Event{What: what, Gone: true} }
	flap := []kernel.Event{event(link3(false)), event(link3(true))}
	type test struct {
		object Object
		entry  Entry
		events []kernel.Event
		always bool // checked whatever has happened
	}
	tests := map[string]test{
		"VRF":       {Membership(ns, 3), Entry{Master: 9}, []kernel.Event{event(link3(true))}, true},
		"VRF rules": {VRFRules(ns, 3), Entry{}, []kernel.Event{gone(kernel.VRFRule{})}, true},
	}
	for family, ip := range map[string]string{"IPv4 ": "10.0.0.1", "IPv6 ": "fd00::1"} {
		a := kernel.Addr{Link: 3, Prefix: netip.PrefixFrom(netip.MustParseAddr(ip), 24)}
		r := kernel.Route{Link: 3, Dst: netip.PrefixFrom(netip.MustParseAddr(ip), 16).Masked(), Table: kernel.MainTable, Protocol: kernel.Protocol}
		n := kernel.Neighbour{Link: 3, IP: a.Prefix.Addr(), MAC: mac, Protocol: kernel.Protocol}
		blackhole := event(kernel.Route{Dst: r.Dst, Table: r.Table, Type: unix.RTN_BLACKHOLE})
		blackhole.Replaces = true
		other := n
		other.MAC = net.HardwareAddr{2, 0, 0, 0, 0, 2}
		connected := kernel.Route{Link: 3, Dst: a.Prefix.Masked(), Table: kernel.MainTable}
		many := make([]kernel.Event, mostPast+1)
		for i := range many {
			many[i] = gone(kernel.Addr{Link: 4, Prefix: a.Prefix})
		}
		tests[family+"address"] = test{Address(ns, a), Entry{}, []kernel.Event{gone(a)}, false}
		tests[family+"address, and many others"] = test{Address(ns, a), Entry{}, append([]kernel.Event{gone(a)}, many...), false}
		tests[family+"connected route"] = test{Address(ns, a), Entry{}, []kernel.Event{gone(connected)}, false}
		tests[family+"route"] = test{Route(ns, r), Entry{Route: r}, []kernel.Event{gone(r)}, false}
		tests[family+"route replaced"] = test{Route(ns, r), Entry{Route: r}, []kernel.Event{blackhole}, false}
		tests[family+"route, with the state of its link"] = test{Route(ns, r), Entry{Route: r}, flap, false}
		tests[family+"neighbour"] = test{Neighbour(ns, n), Entry{MAC: mac.String()}, []kernel.Event{gone(n)}, false}
		tests[family+"neighbour replaced"] = test{Neighbour(ns, n), Entry{MAC: mac.String()}, []kernel.Event{event(other)}, false}
	}
	for name, tt := range tests {
		for _, before := range []bool{false, true} {
			t.Run(name+map[bool]string{true: ", before the verb"}[before], func(t *testing.T) {
				watch(t, func(w *watching) {
					at, err := w.set.Open(nsRed())
					if err != nil {
						t.Fatal(err)
					}
					defer at.Close()
					if tt.object.Kind == KindAddress {
						w.red.bare = []kernel.Addr{{Link: 3, Prefix: tt.object.Prefix}}
					}
					began := w.Clock()
					w.red.events <- tt.events
					<-time.After(time.Second)
					synctest.Wait()
					if before {
						began = w.Clock()
					}
					tt.entry.Key, tt.entry.Link = "one", 3
					w.Created(at, tt.object, tt.entry, began)
					<-time.After(time.Second)
					synctest.Wait()
					if before && !tt.always {
						w.expect(t)
						if w.red.dumps > 0 {
							t.Errorf("read the kernel %d times", w.red.dumps)
						}
						return
					}
					w.expect(t, "one")
				})
			})
		}
	}
}
