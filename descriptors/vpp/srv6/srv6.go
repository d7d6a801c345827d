// Package srv6 implements VPP's segment routing over IPv6 (RFC 8754, RFC 8986): local SIDs,
// policies, steering into policies, and the source address of encapsulated packets.
//
//	err := srv6.Register(s, srv6.Options{API: manager, Interfaces: links, ...})
//
// An address is the identity of a local SID in VPP and in its key. VPP has no room for an
// owner: an item that nobody declares is left alone, unless the agent remembers having made it.
//
// VPP checks little here, so the descriptors must:
//
//	request                                           | VPP 25.10
//	delete a local SID, naming a table that is missing | dies (sr_localsid.c, sr_cli_localsid)
//	look up in a table that is missing                | dies at the next dump
//	End.AD with an interface that is missing          | makes End instead, and reports an error
//	take frames from an interface that is no Ethernet | dies, or changes another interface
//	end the steering of frames, from 26.06 on         | clears what else the interface has in layer 2
//	delete a policy with a table that is gone         | dies
//	steer packets in a table that is missing          | dies, also when that is to end
//	steer frames or IPv4 packets into another policy  | does not check whether it has an outer header
//	add a list without segments                       | dies
//	delete a list that a policy does not have         | reads beyond its lists
//	delete a local SID made as "address X"            | does not find it, unless "prefix X/128" made it
//
// The source address is written into the header of a segment list when that is added, so a new
// address does not reach existing policies. The global descriptor then makes their lists anew:
// new lists come before the old ones go. From 23.06 on, VPP tells the address that a policy has,
// so one that was missed, because the agent ended, is found when VPP is read back.
//
// No message tells some of the state. The descriptors read pages of the command line instead,
// whose format is the same in all releases from 22.02 to 26.06:
//
//	state                       | where                                   | read
//	source address              | no message                              | always
//	parameters of End.AD        | no message; no message makes it, either | if there is a SID of a plugin
//	function of a SID, 22.02    | sr_localsids_details has 0 (a byte that | if there is a SID
//	                            | was swapped as if it were two)          |
//
// VPP tells the IP version of a next hop by its value: ::5 comes as 0.0.0.5. The function of
// the SID says which it is. VLAN tags of End.DX2 have no effect in any release; VPP 26.06
// does not even store them.
//
//	file          | subject
//	srv6.go       | registration, addresses
//	localsid.go   | local SIDs: validation and their meaning
//	sidverbs.go   | local SIDs: create, delete
//	sidread.go    | local SIDs: Retrieve
//	page.go       | the command line of VPP
//	global.go     | source address
//	policy.go     | policies: validation, and when two are the same
//	policyverbs.go | policies: verbs and Retrieve
//	steering.go   | steering
//
// Tests run against a simulated VPP, which is itself tested against a real one.
package srv6

import (
	"context"
	"errors"
	"fmt"
	"net/netip"

	"go.fd.io/govpp/api"
	"go.fd.io/govpp/binapi/interface_types"
	"go.fd.io/govpp/binapi/ip"

	"github.com/keyplane/keyplane/descriptors/vpp/conn"
	"github.com/keyplane/keyplane/descriptors/vpp/iface"
	"github.com/keyplane/keyplane/models"
	"github.com/keyplane/keyplane/scheduler"
)

// Names of the descriptors, as logs, REST and RetrieveAfter use them.
const (
	GlobalName   = "vpp-srv6-global"
	LocalSIDName = "vpp-sr-localsid"
	PolicyName   = "vpp-sr-policy"
	SteeringName = "vpp-sr-steering"
)

// Options configure the descriptors. All fields are required.
type Options struct {
	API        conn.API
	Interfaces iface.Index
	Modes      Modes
	Connection string
}

// Modes has interfaces enter and leave layer 2. It is that of package l2.
type Modes interface {
	// Enter is called before an interface may enter layer 2.
	Enter(ctx context.Context, index interface_types.InterfaceIndex) error
	// Leave sends a request that may make an interface leave layer 2.
	Leave(ctx context.Context, index interface_types.InterfaceIndex, request, reply api.Message) error
	// Keep is Leave for an interface that is to stay in its bridge domain or cross-connect.
	Keep(ctx context.Context, index interface_types.InterfaceIndex, request, reply api.Message) error
}

// An Output has segment routing send frames out of an interface again. It is called when the interface
// has left layer 2.
type Output func(ctx context.Context, index interface_types.InterfaceIndex) error

// handler implements the verbs. The scheduler calls verbs of different values concurrently.
type handler struct {
	Options
	policies policies
	steered  steered
}

// Register adds the descriptors to s. The caller registers the interface descriptor first.
func Register(s *scheduler.Scheduler, o Options) (Output, error) {
	h := &handler{Options: o}
	registrar := s.OnConnection(o.Connection)
	_, errGlobal := scheduler.Register(registrar, h.globalDescriptor())
	_, errSID := scheduler.Register(registrar, h.localSIDDescriptor())
	_, errPolicy := scheduler.Register(registrar, h.policyDescriptor())
	_, errSteering := scheduler.Register(registrar, h.steeringDescriptor())
	return h.output, errors.Join(errGlobal, errSID, errPolicy, errSteering)
}

// faults collects the invalid fields of a value.
type faults struct{ models.Faults }

// unicast reads an IPv6 address of one node. Others are not valid.
func unicast(text string) netip.Addr {
	a, err := netip.ParseAddr(text)
	if err != nil || !a.Is6() || a.Is4In6() || a.Zone() != "" || a.IsUnspecified() || a.IsMulticast() {
		return netip.Addr{}
	}
	return a
}

// unicast4 is unicast for IPv4.
func unicast4(text string) netip.Addr {
	a, err := netip.ParseAddr(text)
	if err != nil || !a.Is4() || a.IsUnspecified() || a.IsMulticast() {
		return netip.Addr{}
	}
	return a
}

// address refuses text that is no IPv6 address of one node.
func (f *faults) address(field, text string) {
	if !unicast(text).IsValid() {
		f.Add(field, text, `an IPv6 unicast address, such as "fd00::1"`)
	}
}

// hasTable tells whether VPP has an IP table.
func (h *handler) hasTable(ctx context.Context, id uint32, ipv6 bool) (bool, error) {
	if id == 0 {
		return true, nil
	}
	all, err := conn.Dump[ip.IPTableDetails](ctx, h.API, &ip.IPTableDump{})
	for _, d := range all {
		if d.Table.TableID == id && d.Table.IsIP6 == ipv6 {
			return true, nil
		}
	}
	return false, err
}

// needFrames refuses an interface without frames. VPP changes a flag of the interface in its
// list of Ethernet interfaces, and does not check that the interface is there.
func (h *handler) needFrames(ctx context.Context, field, name string, at iface.Meta) error {
	err := iface.NeedMAC(ctx, h.API, name, at, "the steering of frames")
	if errors.Is(err, iface.ErrNoMAC) {
		return invalid(field, name, "an Ethernet interface: this one has no MAC address, and so no frames")
	}
	return err
}

// invalid returns the error of a value that only VPP can tell is wrong.
func invalid(field string, value any, expected string) error {
	return fmt.Errorf("%w: %w", scheduler.ErrInvalid, &models.FieldError{Field: field, Value: value, Expected: expected})
}

// retval returns the return value of a refused request; 0: it failed in another way, or not
// at all. Segment routing has its own small negative numbers, which mean something else in
// VPP's list of errors.
func retval(err error) int32 {
	if r, is := errors.AsType[*conn.Refusal](err); is {
		return r.Retval
	}
	return 0
}
