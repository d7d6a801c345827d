package iface

import (
	"strings"

	"github.com/keyplane/keyplane/descriptors/linux/internal/kernel"
	"github.com/keyplane/keyplane/descriptors/linux/netns"
	"github.com/keyplane/keyplane/proto/ligato/linux/interfaces"
)

// unconfigured is the alias of a link that the agent has released. An alias that is not
// empty shows people that the agent knew the link.
const unconfigured = "unconfigured"

// mark is the start of the alias of every link of this agent.
func (h *handler) mark() string { return agentMark + h.Label + "/" }

// agentMark is the start of the alias of every link of any agent.
const agentMark = "/vnf-agent/"

// ours reports whether a link belongs to this agent: it has our mark, or the mark of an
// installation with our label that is not running. What the agent knows counts as its mark.
func (h *handler) ours(space *netns.Space, l kernel.Link, learns bool) bool {
	l = h.known(space, l)
	return strings.HasPrefix(l.Alias, h.mark()) && !h.otherLives(space, l, learns)
}

// aliasOf returns the alias of a link. Retrieve rebuilds the value from it, so it contains
// all that the kernel does not show otherwise.
//
//	VETH          mark NAME/PEER
//	TAP_TO_VPP    mark NAME/VPP-TAP/ORIGINAL-NAME
//	other types   mark NAME
func (h *handler) aliasOf(v *interfaces.Interface, original string) string {
	alias := h.mark() + v.GetName()
	switch v.GetType() {
	case interfaces.Interface_VETH:
		alias += "/" + v.GetVeth().GetPeerIfName()
	case interfaces.Interface_TAP_TO_VPP:
		alias += "/" + v.GetTap().GetVppTapIfName() + "/" + original
	default: // the name identifies it
	}
	return alias
}

// is reports whether the link was marked for v by this agent, or by one that it replaces.
// The original name of a TAP is not known from the value, so only the part before it
// counts.
func (h *handler) is(space *netns.Space, l kernel.Link, v *interfaces.Interface) bool {
	l = h.known(space, l)
	alias := h.aliasOf(v, "")
	if v.GetType() == interfaces.Interface_TAP_TO_VPP {
		return strings.HasPrefix(l.Alias, alias) && !h.otherLives(space, l, true)
	}
	return l.Alias == alias && !h.otherLives(space, l, true)
}

// original returns the name that a TAP had before the agent renamed it.
func original(l kernel.Link) string { return l.Alias[strings.LastIndexByte(l.Alias, '/')+1:] }

// kindOf returns the interface type of a link of this agent.
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

// read rebuilds the value of a link from its alias. Names may contain slashes, so an alias
// can be ambiguous. known holds the aliases of desired values; paired reports whether a
// link with the alias of a possible VETH peer exists.
func (h *handler) read(l kernel.Link, known map[string]*interfaces.Interface, paired func(alias string) bool) *interfaces.Interface {
	v := &interfaces.Interface{Type: kindOf(l)}
	logical := strings.TrimPrefix(l.Alias, h.mark())
	switch v.Type {
	case interfaces.Interface_VETH:
		v.Name, v.Link = splitVETH(logical, h.mark(), known[l.Alias], paired)
	case interfaces.Interface_TAP_TO_VPP:
		rest := logical[:max(0, strings.LastIndexByte(logical, '/'))]
		// The desired value knows where its name ends.
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

// splitVETH splits "name/peer". It prefers the split of the desired value, then a split
// for which a link "peer/name" exists, then the first slash.
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
