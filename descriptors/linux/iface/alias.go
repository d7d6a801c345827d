package iface

import (
	"strings"

	"github.com/keyplane/keyplane/descriptors/linux/internal/kernel"
	"github.com/keyplane/keyplane/descriptors/linux/netns"
	"github.com/keyplane/keyplane/proto/ligato/linux/interfaces"
)

// unconfigured is the alias of what was ours, and is somebody's again.
const unconfigured = "unconfigured"

// mark begins the alias of every link that is ours.
func (h *handler) mark() string { return agentMark + h.Label + "/" }

// agentMark begins the alias of every link of any agent.
const agentMark = "/vnf-agent/"

// ours tells whether a link carries our mark, or that of an installation of our label that
// does not live.
func (h *handler) ours(space *netns.Space, l kernel.Link) bool {
	return strings.HasPrefix(l.Alias, h.mark()) && !h.otherLives(space, l)
}

// aliasOf is the mark, the logical name, and what is needed to find the rest
// again: the peer of a VETH; of a TAP the interface of VPP and the name that the
// link had before (original).
func (h *handler) aliasOf(v *interfaces.Interface, original string) string {
	alias := h.mark() + v.GetName()
	switch v.GetType() {
	case interfaces.Interface_VETH:
		alias += "/" + v.GetVeth().GetPeerIfName()
	case interfaces.Interface_TAP_TO_VPP:
		alias += "/" + v.GetTap().GetVppTapIfName() + "/" + original
	}
	return alias
}

// is tells whether the link was marked for v, by this agent or one whose place it takes.
func (h *handler) is(space *netns.Space, l kernel.Link, v *interfaces.Interface) bool {
	alias := h.aliasOf(v, "")
	if v.GetType() == interfaces.Interface_TAP_TO_VPP {
		return strings.HasPrefix(l.Alias, alias) && !h.otherLives(space, l)
	}
	return l.Alias == alias && !h.otherLives(space, l)
}

// original is the name that a TAP had before it was ours.
func original(l kernel.Link) string { return l.Alias[strings.LastIndexByte(l.Alias, '/')+1:] }

// kindOf is the type of interface that a link of ours is.
func kindOf(l kernel.Link) interfaces.Interface_Type {
	switch {
	case l.Name == loopback:
		return interfaces.Interface_LOOPBACK
	case l.Kind == "veth":
		return interfaces.Interface_VETH
	case l.Kind == "tun":
		return interfaces.Interface_TAP_TO_VPP
	case l.Kind == "vrf":
		return interfaces.Interface_VRF_DEVICE
	case l.Kind == "dummy":
		return interfaces.Interface_DUMMY
	}
	return interfaces.Interface_UNDEFINED
}

// read makes of a link's alias the value it was marked for, without what the
// kernel shows otherwise. Names may have slashes in them: known has every alias
// whose value is known; paired tells of other aliases of VETHs whether they exist.
func (h *handler) read(l kernel.Link, known map[string]*interfaces.Interface, paired func(alias string) bool) *interfaces.Interface {
	v := &interfaces.Interface{Type: kindOf(l)}
	logical := strings.TrimPrefix(l.Alias, h.mark())
	switch v.Type {
	case interfaces.Interface_VETH:
		v.Name, v.Link = splitVETH(logical, h.mark(), known[l.Alias], paired)
	case interfaces.Interface_TAP_TO_VPP:
		rest := logical[:max(0, strings.LastIndexByte(logical, '/'))]
		if is := known[h.mark()+rest]; is != nil {
			v.Name, v.Link = is.GetName(), &interfaces.Interface_Tap{Tap: is.GetTap()}
			return v
		}
		name, tap, _ := strings.Cut(rest, "/")
		v.Name, v.Link = name, &interfaces.Interface_Tap{Tap: &interfaces.TapLink{VppTapIfName: tap}}
	case interfaces.Interface_VRF_DEVICE:
		v.Name, v.Link = logical, &interfaces.Interface_VrfDev{VrfDev: &interfaces.VrfDevLink{RoutingTable: l.Table}}
	default:
		v.Name = logical
	}
	return v
}

// splitVETH finds where "name/peer" is to be split: as in the value that is known,
// else so that there is a link "peer/name", else at the first slash.
func splitVETH(logical, mark string, known *interfaces.Interface, paired func(string) bool) (string, *interfaces.Interface_Veth) {
	name, peer, _ := strings.Cut(logical, "/")
	if known != nil {
		name, peer = known.GetName(), known.GetVeth().GetPeerIfName()
	} else {
		for i := range logical {
			if logical[i] == '/' && paired(mark+logical[i+1:]+"/"+logical[:i]) {
				name, peer = logical[:i], logical[i+1:]
				break
			}
		}
	}
	return name, &interfaces.Interface_Veth{Veth: &interfaces.VethLink{PeerIfName: peer}}
}
