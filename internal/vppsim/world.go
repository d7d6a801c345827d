package vppsim

import (
	"fmt"
	"slices"
	"sort"
	"strings"

	"go.fd.io/govpp/api"
	"go.fd.io/govpp/binapi/vlib"
	"go.fd.io/govpp/binapi/vpe"
)

// A world is all that a VPP has been told. It is guarded by Sim.mu.
type world struct {
	sim    *Sim
	pid    uint32
	asking *client // whose request is served

	interfaces interfaces
	tables     tables
	l2         switching
	memifSockets
	beside
	nets       map[tableKey]nets     // of all addresses
	unnumbered map[uint32]uint32     // borrower to lender
	bonded     map[uint32]bondMember // by index of the member
	hidden     map[string][]*iface   // by kind, the last hidden at the end
}

func newWorld(s *Sim) *world {
	w := &world{sim: s, pid: s.pid, nets: map[tableKey]nets{}, unnumbered: map[uint32]uint32{}, bonded: map[uint32]bondMember{}, hidden: map[string][]*iface{}, memifSockets: newMemifSockets(), beside: newBeside()}
	w.interfaces.init()
	w.findHardware(s.o.Hardware)
	w.tables.init()
	w.l2.init()
	return w
}

// before tells whether the release that is posed as is older than the given one.
func (w *world) before(release string) bool {
	return slices.Index(Releases(), w.sim.o.Release) < slices.Index(Releases(), release)
}

// emit tells everyone who wants them of an event; build makes it for a client's pid.
func (w *world) emit(name string, build func(pid uint32) api.Message) {
	for c := range w.sim.clients {
		pid, wants := c.wanted[name]
		if !wants {
			continue
		}
		c.events = append(c.events, build(pid))
		if c != w.asking {
			c.sendEvents()
			c.flush()
		}
	}
}

// want registers the client that asks for an event, or takes that back.
func (w *world) want(name string, enable bool, pid uint32) errno {
	if _, wants := w.asking.wanted[name]; wants == enable {
		return api.INVALID_REGISTRATION
	}
	if enable {
		w.asking.wanted[name] = pid
	} else {
		delete(w.asking.wanted, name)
	}
	return ok
}

// version is what VPP calls its version.
func (w *world) version() string { return w.sim.o.Release + "-simulated" }

func showVersion(w *world, _ *vpe.ShowVersion, r *vpe.ShowVersionReply) errno {
	r.Program, r.Version, r.BuildDate, r.BuildDirectory = "vpe", w.version(), "", ""
	return ok
}

func cliInband(w *world, q *vlib.CliInband, r *vlib.CliInbandReply) errno {
	r.Reply = w.show(strings.Join(strings.Fields(q.Cmd), " "))
	return ok
}

// show is what a command of VPP's own command line would show, in a form of ours, but for its plugins.
func (w *world) show(command string) string {
	pages := map[string]func(*world) string{
		"show arp proxy":          (*world).showProxies,
		"show bridge-domain":      (*world).showBridges,
		"show dhcp client":        (*world).showDHCPClients,
		"show dhcp proxy":         (*world).showDHCPProxies,
		"show interface span":     (*world).showSpans,
		"show interface":          (*world).showInterfaces,
		"show ip fib":             (*world).showRoutes,
		"show ip neighbors":       (*world).showNeighbours,
		"show ip neighbor-config": (*world).showAgings,
		"show ip table":           (*world).showTables,
		"show ip6 nd":             (*world).showAutoconfs,
		"show l2fib":              (*world).showL2FIB,
		"show l3xc":               (*world).showL3XCs,
		"show plugins":            (*world).showPlugins,
		"show teib":               (*world).showTEIB,
		"show vrrp vr":            (*world).showRouters,
	}
	if page := pages[command]; page != nil {
		return page(w)
	}
	known := []string{}
	for name := range pages {
		known = append(known, name)
	}
	sort.Strings(known)
	return fmt.Sprintf("simulated VPP: no command %q, but: %s\n", command, strings.Join(known, ", "))
}

// Show is a page of what VPP's own command line would show: "show interface".
func (s *Sim) Show(command string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.world.show(command)
}
