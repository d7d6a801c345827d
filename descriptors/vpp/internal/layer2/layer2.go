// Package layer2 tells which features of VPP's layer 2 an interface has.
//
// VPP clears the features of an interface that leaves layer 2 (VPP l2_input.c, set_int_l2_mode). The
// plugins that have set them, such as acl and span, do not notice, and list what they had as before.
// So only the features prove that VPP looks at an access list or mirrors packets.
package layer2

import (
	"context"
	"errors"
	"strings"

	"go.fd.io/govpp/api"
	vppif "go.fd.io/govpp/binapi/interface"
	"go.fd.io/govpp/binapi/interface_types"
	"go.fd.io/govpp/binapi/vlib"

	"github.com/keyplane/keyplane/descriptors/vpp/conn"
)

// Nodes of VPP that are features.
const (
	ListsIn   = "l2-input-feat-arc"       // IP access lists, incoming
	ListsOut  = "l2-output-feat-arc"      // IP access lists, outgoing
	Hosts     = "l2-input-acl"            // a MACIP access list
	MirrorIn  = "span-l2-input"           // mirrors of received packets
	MirrorOut = "span-l2-output"          // mirrors of sent packets
	Steering  = "sr-pl-rewrite-encaps-l2" // steering of frames by segment routing
)

// Features are the features of an interface.
type Features struct{ page string }

// Of returns the features of an interface. They are not known of one that does not exist. No message
// tells them in all releases, so the command line does.
func Of(ctx context.Context, a conn.API, index interface_types.InterfaceIndex) (Features, error) {
	all, err := conn.Dump[vppif.SwInterfaceDetails](ctx, a, &vppif.SwInterfaceDump{SwIfIndex: index})
	if err != nil {
		return Features{}, err
	}
	for _, d := range all {
		if d.SwIfIndex != index { // VPP answers a dump of index 0 with all interfaces
			continue
		}
		reply := &vlib.CliInbandReply{}
		err := a.Call(ctx, &vlib.CliInband{Cmd: "show interface features " + d.InterfaceName}, reply)
		if errors.Is(err, api.UNSPECIFIED) {
			return Features{}, nil // VPP's command line cannot read this name
		}
		return Features{reply.Reply}, err
	}
	return Features{}, nil
}

// Known reports whether VPP has said which features the interface has.
func (f Features) Known() bool { return f.page != "" }

// Has reports whether the interface has a feature.
func (f Features) Has(node string) bool { return strings.Contains(f.page, node) }
