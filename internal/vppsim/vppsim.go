// Package vppsim is a simulated VPP. It speaks VPP's binary API over the same socket,
// keeps configuration, answers dumps and sends events. A test can make it fail, stall or
// die.
//
//	sim, err := vppsim.New(vppsim.Options{Socket: path, Release: "24.10"})
//	err = sim.Start()
//	defer sim.Kill()
//
// It forwards no packet. Its answers are those of a real VPP, including the odd ones:
// TestBehaviour lists them, and `make test-vpp` runs the same list against a real VPP. The
// simulated VPP has the messages that our descriptors use, with the definitions of 25.10.
// As an older or newer release it leaves out the messages that differ there. The program cmd/vppsim
// lists all other messages of the release, too, and refuses them with a return value of their own:
// other clients of VPP check the whole table before they begin.
//
// The package puts plugins together; each plugin is a folder of its own. Package core
// documents how a plugin registers its messages, and which state plugins share. Plugins ip
// and l2 serve others as well: tunnels need routing tables, and deleting a tunnel leaves
// its bridge domain. No other plugin imports a plugin; internal/floors tests that.
package vppsim

import (
	"net/netip"

	"github.com/keyplane/keyplane/internal/vppsim/core"
	"github.com/keyplane/keyplane/internal/vppsim/dhcp"
	"github.com/keyplane/keyplane/internal/vppsim/rdcp"
	"github.com/keyplane/keyplane/internal/vppsim/vrrp"
	"github.com/keyplane/keyplane/internal/vppsim/wireguard"
)

// Options are the options of a Sim; see core.Options.
type Options = core.Options

// A Fault makes a message fail; see core.Fault.
type Fault = core.Fault

// Releases returns the releases that a Sim can pose as, the oldest first.
func Releases() []string { return core.Releases() }

// Without returns the Options.Without of a VPP that has loaded no plugins but these files, for
// example "memif_plugin.so". Its core has the other messages. A file that no plugin has is ignored.
func Without(release string, loaded ...string) []string { return core.Without(release, loaded...) }

// A Sim is a simulated VPP. Its methods may be called from any goroutine.
type Sim struct {
	*core.Server
	told told // of the VPP that runs now; guarded by Server.Do
}

// told are the plugins that a test tells about the world outside.
type told struct {
	dhcp    *dhcp.Clients
	peers   *wireguard.Peers
	routers *vrrp.Routers
	links   *rdcp.Links
}

// New returns a Sim that does nothing before Start. An unknown release or plugin is an error.
func New(o Options) (*Sim, error) {
	s := &Sim{}
	server, err := core.NewServer(o, func(vpp *core.VPP) { s.told = register(vpp) })
	if err != nil {
		return nil, err
	}
	s.Server = server
	return s, nil
}

// Lease gives an address by DHCP to the interface with a tag, and informs the API client
// that configured the DHCP client. The zero Prefix withdraws the lease without an event.
// An interface without DHCP client is an error.
func (s *Sim) Lease(tag string, address netip.Prefix, router netip.Addr) error {
	var err error
	s.Do(func() { err = s.told.dhcp.Lease(tag, address, router) })
	return err
}

// Meet has the WireGuard peer with a public key (in base64) answer from an endpoint: the tunnel is
// established, and VPP sends to that endpoint. The zero AddrPort ends the session. An unknown
// public key is an error.
func (s *Sim) Meet(public string, from netip.AddrPort) error {
	var err error
	s.Do(func() { err = s.told.peers.Meet(public, from) })
	return err
}

// Elect makes the backup virtual routers with an ID masters, on the interface with a tag. It is an
// error if there is no such router.
func (s *Sim) Elect(tag string, id uint8) error {
	var err error
	s.Do(func() { err = s.told.routers.Elect(tag, id) })
	return err
}

// Advertise has a router advertise an IPv6 network of 64 bits on the link of the interface with a
// tag, now and whenever it is solicited. It is an error if there is no such interface.
func (s *Sim) Advertise(tag string, network netip.Prefix) error {
	var err error
	s.Do(func() { err = s.told.links.Advertise(tag, network) })
	return err
}
