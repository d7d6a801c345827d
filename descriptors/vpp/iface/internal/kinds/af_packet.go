package kinds

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"go.fd.io/govpp/api"
	"go.fd.io/govpp/binapi/af_packet"
	vppif "go.fd.io/govpp/binapi/interface"
	"go.fd.io/govpp/binapi/interface_types"
	"google.golang.org/protobuf/proto"

	"github.com/keyplane/keyplane/descriptors/vpp/conn"
	"github.com/keyplane/keyplane/descriptors/vpp/internal/ifindex"
	"github.com/keyplane/keyplane/proto/ligato/vpp/interfaces"
	"github.com/keyplane/keyplane/scheduler"
)

// afPacketKind is the kind of AF_PACKET.
func afPacketKind() Kind {
	return Kind{
		Link:           "afpacket",
		CreatedWithMAC: true,
		MayExist:       true,
		Validate:       validateAFPacket,
		SameLink:       func(old, new *interfaces.Interface) bool { return proto.Equal(old.GetAfpacket(), new.GetAfpacket()) },
		Dependencies:   afPacketDependencies,
		Create:         createAFPacket,
		Delete:         deleteAFPacket,
		Retrieve:       retrieveAFPackets,
	}
}

// validateAFPacket requires one of the two fields that name the link. NormalizeLink drops
// host_if_name if both are set.
func validateAFPacket(f *Findings, v *interfaces.Interface) {
	host, linux := v.GetAfpacket().GetHostIfName(), v.GetAfpacket().GetLinuxInterface()
	switch {
	case host == "" && linux == "":
		f.Add("afpacket.host_if_name", "", "a link of the host, or linux_interface")
	default:
		f.hostName("afpacket.host_if_name", host)
	}
}

// hostLink begins the key of a link of the host.
const hostLink = "linux/interface/host-name/"

// afPacketDependencies returns the Linux interface of the agent, or the host link as
// package linux announces it. VPP refuses to create the interface before its link exists.
func afPacketDependencies(v *interfaces.Interface) []scheduler.Dependency {
	key := hostLink + v.GetAfpacket().GetHostIfName()
	if linux := v.GetAfpacket().GetLinuxInterface(); linux != "" {
		key = "config/linux/interfaces/v2/interface/" + linux
	}
	return []scheduler.Dependency{{Label: "afpacket-host-interface-exists", Key: key}}
}

// linkOf returns the host link of an AF_PACKET interface.
func (e *Env) linkOf(v *interfaces.Interface) (string, error) {
	linux := v.GetAfpacket().GetLinuxInterface()
	if linux == "" {
		return v.GetAfpacket().GetHostIfName(), nil
	}
	if host, _, ok := e.LinuxHost(linux); ok {
		return host, nil
	}
	return "", fmt.Errorf("interface %s of Linux: %w", linux, ErrNotThere)
}

// createAFPacket adopts an existing untagged interface on the link. VPP has at most one
// per link.
func createAFPacket(ctx context.Context, e *Env, v *interfaces.Interface) (uint32, error) {
	host, err := e.linkOf(v)
	if err != nil {
		return 0, err
	}
	mac, given := ParseMAC(v.GetPhysAddress())
	// Version 3 adds the mode and the number of transmit queues. These are the values that version 2 implies.
	request, err := e.API.First(
		&af_packet.AfPacketCreateV3{
			Mode: af_packet.AF_PACKET_API_MODE_ETHERNET, HostIfName: host, HwAddr: mac, UseRandomHwAddr: !given, NumRxQueues: 1, NumTxQueues: 1,
		},
		&af_packet.AfPacketCreateV2{HostIfName: host, HwAddr: mac, UseRandomHwAddr: !given, NumRxQueues: 1},
	)
	if err != nil {
		return 0, err
	}
	if _, newer := request.(*af_packet.AfPacketCreateV3); newer {
		reply := &af_packet.AfPacketCreateV3Reply{}
		err = e.API.Call(ctx, request, reply)
		return uint32(reply.SwIfIndex), e.ignoreIfOurs(ctx, v, reply.SwIfIndex, err)
	}
	reply := &af_packet.AfPacketCreateV2Reply{}
	err = e.API.Call(ctx, request, reply)
	return uint32(reply.SwIfIndex), e.ignoreIfOurs(ctx, v, reply.SwIfIndex, err)
}

// ignoreIfOurs returns err unless it reports an existing interface that has no tag, or the
// tag of v.
func (e *Env) ignoreIfOurs(ctx context.Context, v *interfaces.Interface, index interface_types.InterfaceIndex, err error) error {
	if !errors.Is(err, api.IF_ALREADY_EXISTS) {
		return err
	}
	// VPP's error has the index of the existing interface.
	all, lookErr := conn.Dump[vppif.SwInterfaceDetails](ctx, e.API, &vppif.SwInterfaceDump{SwIfIndex: index})
	switch {
	case lookErr != nil || len(all) != 1:
		return errors.Join(err, lookErr)
	case all[0].Tag == "" || all[0].Tag == v.GetName():
		return nil
	}
	return fmt.Errorf("interface %s is on that link: %w", all[0].Tag, err)
}

// linkPrefix begins VPP's names of AF_PACKET interfaces; the link follows.
const linkPrefix = "host-"

// deleteAFPacket names the link, because this message takes no index. VPP's own name of
// the interface has the link; a value whose Linux interface is gone could not tell it.
func deleteAFPacket(ctx context.Context, e *Env, v *interfaces.Interface, meta ifindex.Meta) error {
	host, known := strings.CutPrefix(meta.InternalName, linkPrefix)
	if !known {
		var err error
		if host, err = e.linkOf(v); err != nil {
			return err
		}
	}
	err := e.API.Call(ctx, &af_packet.AfPacketDelete{HostIfName: host}, &af_packet.AfPacketDeleteReply{})
	// VPP's error for a link that it does not have.
	if errors.Is(err, api.SYSCALL_ERROR_1) {
		return nil // it does not exist
	}
	return err
}

// LinkRaiser is called before VPP disables v, and returns what enables its host link again. VPP disables the link together with the
// interface (VPP af_packet/device.c, af_packet_interface_admin_up_down), although the link
// is not VPP's, and v depends on it. The Linux descriptors handle the links that they have made.
func (e *Env) LinkRaiser(v *interfaces.Interface) (raise func()) {
	host := v.GetAfpacket().GetHostIfName()
	if linux := v.GetAfpacket().GetLinuxInterface(); linux != "" {
		if name, foreign, ok := e.LinuxHost(linux); ok && foreign {
			host = name
		}
	}
	if host == "" {
		return func() {}
	}
	return func() {
		if err := e.RaiseLink(host); err != nil {
			e.Log.Warn("VPP has put down a link of the host, which stays so", "interface", v.GetName(), "link", host, "err", err)
		}
	}
}

// retrieveAFPackets takes the form of the link from the desired value, as VPP only has its
// name.
func retrieveAFPackets(ctx context.Context, e *Env, all map[uint32]*Found) error {
	if !anyOf(all, "af-packet") {
		return nil
	}
	details, err := conn.Dump[af_packet.AfPacketDetails](ctx, e.API, &af_packet.AfPacketDump{})
	if err != nil {
		return err
	}
	for _, d := range details {
		f := all[uint32(d.SwIfIndex)]
		if f == nil {
			continue
		}
		link := &interfaces.AfpacketLink{HostIfName: d.HostIfName}
		// The declared form may name the Linux interface instead of the link.
		if w := f.Desired.GetAfpacket(); w != nil {
			if host, err := e.linkOf(f.Desired); err == nil && host == d.HostIfName {
				link = w
			}
		}
		f.Value.Type = interfaces.Interface_AF_PACKET
		f.Value.Link = &interfaces.Interface_Afpacket{Afpacket: link}
	}
	return nil
}
