// Package acl implements VPP's access lists: IP lists, which look at networks, protocols and
// ports, and MACIP lists, which look at the source of a packet.
//
//	lists, reapply, err := acl.Register(s, acl.Options{API: manager, Interfaces: links, ...})
//
// The name of a list is its tag in VPP. A list without a tag belongs to somebody else: it is
// retrieved under the name UNTAGGED-<number> and never changed.
//
// VPP has one vector of IP lists per interface and direction, and the first rule that matches
// decides. The lists of this agent stand in it in the order of their names, behind the lists
// of others. So the result does not depend on the order in which values arrive. An interface
// has at most one MACIP list.
//
//	file       | subject
//	acl.go     | descriptors
//	rules.go   | validation of rules, and their form in VPP's messages
//	values.go  | VPP's answers as values
//	verbs.go   | lists: create, replace, delete, Retrieve
//	attach.go  | lists on interfaces
//	reapply.go | lists on interfaces that leave and enter layer 2
//
// Tests: tables for rules; verbs and Retrieve run against a simulated VPP, which is itself
// tested against a real one.
package acl

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"go.fd.io/govpp/binapi/interface_types"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/emptypb"

	"github.com/keyplane/keyplane/descriptors/vpp/conn"
	"github.com/keyplane/keyplane/descriptors/vpp/iface"
	"github.com/keyplane/keyplane/descriptors/vpp/internal/ownership"
	"github.com/keyplane/keyplane/descriptors/vpp/keys"
	"github.com/keyplane/keyplane/internal/lists"
	"github.com/keyplane/keyplane/models"
	"github.com/keyplane/keyplane/proto/ligato/vpp/acl"
	"github.com/keyplane/keyplane/scheduler"
)

// Names of the descriptors, as logs, REST and RetrieveAfter use them.
const (
	Name          = "vpp-acl"
	InterfaceName = "vpp-acl-to-interface"
)

// Options configure the descriptors. All fields except Tags are required.
type Options struct {
	API        conn.API
	Interfaces iface.Index
	// Tags tells the owner of a list by its tag. Defaults to: every list with a tag belongs
	// to this agent.
	Tags       *ownership.Owner
	Connection string
}

// Meta is the metadata of a list: its number in VPP (acl_index). IP lists and MACIP lists
// are numbered independently.
type Meta struct {
	Index uint32
	MACIP bool `json:"L2"` // as vpp-agent 3.5 calls it
}

// An Index looks up existing lists by name. The scheduler maintains it.
type Index interface {
	Get(name string) (Meta, bool)
	// Names returns the names of IP lists by number, for reads of state that refers to
	// numbers.
	Names() map[uint32]string
}

// directory is the Index of the scheduler's metadata.
type directory struct{ *scheduler.Index[Meta] }

// Names implements Index.
func (d directory) Names() map[uint32]string {
	out := map[uint32]string{}
	for name, meta := range d.All() {
		if !meta.MACIP {
			out[meta.Index] = name
		}
	}
	return out
}

// handler implements the verbs. The scheduler calls verbs of different values concurrently.
type handler struct {
	Options
	lists    Index
	attached attachments

	mu    sync.Mutex      // guards known
	known map[string]Meta // lists of this agent by name, from the last dump and later creations
}

// A Reapply has VPP look at the lists of an interface again. It is called when the interface has
// left layer 2, and before it enters it.
type Reapply func(ctx context.Context, index interface_types.InterfaceIndex) error

// Register adds the descriptors to s, and returns the lists that exist: other descriptors
// refer to them by number. The caller registers the interface descriptor first.
func Register(s *scheduler.Scheduler, o Options) (Index, Reapply, error) {
	h := &handler{Options: o, known: map[string]Meta{}}
	registrar := s.OnConnection(o.Connection)
	lists, err := scheduler.Register(registrar, h.descriptor())
	h.lists = directory{lists}
	_, errInterface := scheduler.Register(registrar, h.interfaceDescriptor())
	return h.lists, h.reapply, errors.Join(err, errInterface)
}

// descriptor implements the lists. Their interfaces are derived values: an interface that
// does not exist yet must not delay the list.
func (h *handler) descriptor() scheduler.Descriptor[*acl.ACL, Meta] {
	return scheduler.Descriptor[*acl.ACL, Meta]{
		Name:  Name,
		Model: models.For[*acl.ACL](),

		Normalize: normalize,
		Validate:  validate,
		Equivalent: func(_ string, old, new *acl.ACL) bool {
			return isMACIP(old) == isMACIP(new) && slices.Equal(ipRules(old), ipRules(new)) && slices.Equal(macipRules(old), macipRules(new))
		},
		Recreate: func(_ string, old, new *acl.ACL, _ Meta) bool { return isMACIP(old) != isMACIP(new) },
		Derived:  derived,
		Claims:   claims,
		// VPP lets everything through an interface without a list. So a list that takes the place
		// of another one is applied before that one goes; in between, both apply. An interface has
		// one MACIP list only.
		MakeBeforeBreak: func(_ string, v *acl.ACL) bool { return !isMACIP(v) },

		Create: h.create,
		Update: h.update,
		Delete: h.delete,

		Retrieve:      h.retrieve,
		RetrieveAfter: []string{iface.Name},
	}
}

// interfaceDescriptor implements the application of a list to an interface. It has no
// Retrieve: retrieve reports the interfaces with their list.
func (h *handler) interfaceDescriptor() scheduler.Descriptor[*emptypb.Empty, struct{}] {
	return scheduler.Descriptor[*emptypb.Empty, struct{}]{
		Name:   InterfaceName,
		Prefix: keys.ACLParts,
		Match:  func(key string) bool { _, ok := keys.ParseACLInterface(key); return ok },

		Dependencies: func(key string, _ *emptypb.Empty) []scheduler.Dependency {
			at, _ := keys.ParseACLInterface(key)
			return []scheduler.Dependency{{Label: "interface-exists", Key: keys.Interface(at.Interface).Key()}}
		},

		Create: h.attach,
		Delete: h.detach,
	}
}

// normalize removes empty names of interfaces: the list applies to the others.
func normalize(_ string, v *acl.ACL) (*acl.ACL, []string) {
	var warnings []string
	for flow, names := range map[string][]string{"ingress": v.GetInterfaces().GetIngress(), "egress": v.GetInterfaces().GetEgress()} {
		for i, name := range names {
			if name == "" {
				warnings = append(warnings, models.Ignored(fmt.Sprintf("interfaces.%s[%d]", flow, i), name, "no interface has an empty name"))
			}
		}
	}
	if warnings == nil {
		return v, nil
	}
	slices.Sort(warnings)
	v = proto.CloneOf(v)
	empty := func(name string) bool { return name == "" }
	v.Interfaces.Ingress = slices.DeleteFunc(v.Interfaces.Ingress, empty)
	v.Interfaces.Egress = slices.DeleteFunc(v.Interfaces.Egress, empty)
	return v, warnings
}

// derived returns the applications of a list. An interface that is listed twice counts once.
func derived(_ string, v *acl.ACL) []scheduler.KeyValue {
	var out []scheduler.KeyValue
	seen := map[string]bool{}
	add := func(names []string, egress bool) {
		for _, name := range names {
			key := keys.ACLInterface{ACL: v.GetName(), Egress: egress, Interface: name}.Key()
			if !seen[key] {
				seen[key] = true
				out = append(out, scheduler.KeyValue{Key: key, Value: &emptypb.Empty{}})
			}
		}
	}
	add(v.GetInterfaces().GetIngress(), false)
	add(v.GetInterfaces().GetEgress(), true)
	return out
}

// claims claims the interfaces of a MACIP list: VPP replaces the MACIP list of an interface
// without an error, and the other value would be lost.
func claims(_ string, v *acl.ACL) []scheduler.Claim {
	if !isMACIP(v) {
		return nil
	}
	var out []scheduler.Claim
	for i, name := range lists.Firsts(v.GetInterfaces().GetIngress()) {
		out = append(out, scheduler.Claim{
			Resource: "vpp-macip-acl/" + name, Field: fmt.Sprintf("interfaces.ingress[%d]", i), Value: name,
			Want: "an interface without another MACIP list",
		})
	}
	return out
}
