// Package ipsec implements VPP's IPsec (RFC 4301): security associations, policy databases with
// their interfaces and policies, and the protection of tunnels.
//
//	err := ipsec.Register(s, ipsec.Options{API: manager, Interfaces: links, Connection: "vpp"})
//
// The numbers in values are VPP's own, so everything is read back without memory. VPP has no room
// for an owner: a value that nobody declares is left alone, unless the agent remembers having made it.
//
// VPP counts the users of an association, and checks little. So the descriptors do:
//
//	request                                       | VPP 25.10
//	delete an association that is in use          | answers OK; the association stays until its last user goes
//	delete it again                               | takes the hold of a user, and dies when that one goes
//	delete a database with policies               | never frees their associations
//	add a policy twice                            | has it twice
//	delete a policy that is missing               | answers OK
//	protect with associations, one is missing     | refuses, and never frees the others
//	protect another interface than a tunnel       | the same
//	protect an "ipsec" interface, no outer header | the same, and shows a protection that does not exist
//	unbind a database that an interface lacks     | unbinds the other one, whose policies stay in effect for incoming packets
//	list the interfaces of databases              | has a number of its own for the database; only the command line has ours
//
// Keys and salts are secrets: errors and logs never have them.
//
//	file          | subject
//	ipsec.go      | descriptors
//	sa.go         | security associations: validation, and their form in VPP's messages
//	sa_verbs.go   | security associations: verbs, and their users
//	spd.go        | policy databases and their interfaces
//	policy.go     | policies
//	protection.go | protection of tunnels
//	shared.go     | reads that several callers share
//
// Tests run against a simulated VPP, which is itself tested against a real one.
package ipsec

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"go.fd.io/govpp/binapi/ipsec_types"

	"github.com/keyplane/keyplane/descriptors/vpp/conn"
	"github.com/keyplane/keyplane/descriptors/vpp/iface"
	"github.com/keyplane/keyplane/descriptors/vpp/internal/readback"
	"github.com/keyplane/keyplane/descriptors/vpp/keys"
	"github.com/keyplane/keyplane/models"
	"github.com/keyplane/keyplane/proto/ligato/vpp/ipsec"
	"github.com/keyplane/keyplane/scheduler"
)

// Names of the descriptors, as logs, REST and RetrieveAfter use them.
const (
	SAName           = "vpp-ipsec-sa"
	SPDName          = "vpp-ipsec-spd"
	SPDInterfaceName = "vpp-spd-interface"
	SPName           = "vpp-ipsec-sp"
	ProtectName      = "vpp-tun-protect"
)

// ErrInUse reports that an association cannot be deleted, because a policy or protection that
// nobody declares uses it. The scheduler retries.
var ErrInUse = errors.New("is in use in VPP")

// Options configure the descriptors. All fields are required.
type Options struct {
	API        conn.API
	Interfaces iface.Index
	Connection string
}

// Meta is the metadata of an association: the fact that others need to know.
type Meta struct {
	// Tunnel is true if packets get an outer header (tunnel mode).
	Tunnel bool
}

// associations looks up existing associations by their number as text. The scheduler maintains it.
type associations interface {
	Get(number string) (Meta, bool)
}

// handler implements the verbs. The scheduler calls verbs of different values concurrently.
type handler struct {
	Options
	associations associations
	users        shared[map[uint32]string] // of associations, by number

	mu sync.Mutex // guards existing
	// existing are the policies that VPP may have, as it shows them: those that were read back, and
	// those that were requested since, also if no answer came.
	existing map[ipsec_types.IpsecSpdEntry]bool
}

func newHandler(o Options) *handler {
	return &handler{Options: o, users: newShared[map[uint32]string](), existing: map[ipsec_types.IpsecSpdEntry]bool{}}
}

// Register adds the descriptors to s. The caller registers the interface descriptor first.
func Register(s *scheduler.Scheduler, o Options) error {
	h := newHandler(o)
	registrar := s.OnConnection(o.Connection)
	known, err := scheduler.Register(registrar, h.associationDescriptor())
	h.associations = known
	_, errSPD := scheduler.Register(registrar, h.databaseDescriptor())
	_, errInterface := scheduler.Register(registrar, h.interfaceDescriptor())
	_, errPolicy := scheduler.Register(registrar, h.policyDescriptor())
	_, errProtection := scheduler.Register(registrar, h.protectionDescriptor())
	return errors.Join(err, errSPD, errInterface, errPolicy, errProtection)
}

// associationDescriptor implements the associations. VPP changes none in place.
func (h *handler) associationDescriptor() scheduler.Descriptor[*ipsec.SecurityAssociation, Meta] {
	return scheduler.Descriptor[*ipsec.SecurityAssociation, Meta]{
		Name:  SAName,
		Model: models.For[*ipsec.SecurityAssociation](),

		Normalize: normalizeAssociation,
		Validate:  validateAssociation,
		Equivalent: func(_ string, old, new *ipsec.SecurityAssociation) bool {
			return associationOf(old) == associationOf(new)
		},

		Create:    h.createAssociation,
		CreateAll: h.createAssociations,
		Delete:    h.deleteAssociation,
		Retrieve:  h.retrieveAssociations,
	}
}

// databaseDescriptor implements the policy databases. They are a number; their interfaces are
// derived values, since an interface that does not exist yet must not delay the policies.
func (h *handler) databaseDescriptor() scheduler.Descriptor[*ipsec.SecurityPolicyDatabase, struct{}] {
	return scheduler.Descriptor[*ipsec.SecurityPolicyDatabase, struct{}]{
		Name:  SPDName,
		Model: models.For[*ipsec.SecurityPolicyDatabase](),

		Validate:   validateDatabase,
		Equivalent: func(string, *ipsec.SecurityPolicyDatabase, *ipsec.SecurityPolicyDatabase) bool { return true },
		Derived:    interfacesOf,
		Claims:     claimInterfaces,

		Create: h.createDatabase,
		Delete: h.deleteDatabase,
		Retrieve: readback.Retriever[*ipsec.SecurityPolicyDatabase]{
			Read: h.readDatabases,
			ID:   func(v *ipsec.SecurityPolicyDatabase) string { return fmt.Sprint(v.GetIndex()) },
		}.Retrieve,
		RetrieveAfter: []string{iface.Name},
	}
}

// interfaceDescriptor implements the interfaces of a policy database. It has no Retrieve:
// readDatabases reports the interfaces with their database.
func (h *handler) interfaceDescriptor() scheduler.Descriptor[*ipsec.SecurityPolicyDatabase_Interface, struct{}] {
	return scheduler.Descriptor[*ipsec.SecurityPolicyDatabase_Interface, struct{}]{
		Name:   SPDInterfaceName,
		Prefix: string(keys.SPDMembers),
		Match:  func(key string) bool { _, _, ok := keys.SPDMembers.Parse(key); return ok },

		Dependencies: func(key string, _ *ipsec.SecurityPolicyDatabase_Interface) []scheduler.Dependency {
			_, name, _ := keys.SPDMembers.Parse(key)
			return []scheduler.Dependency{{Label: "interface-exists", Key: keys.Interface(name).Key()}}
		},

		Create: func(ctx context.Context, key string, _ *ipsec.SecurityPolicyDatabase_Interface) (struct{}, error) {
			return struct{}{}, h.bind(ctx, key)
		},
		Delete: func(ctx context.Context, key string, _ *ipsec.SecurityPolicyDatabase_Interface, _ struct{}) error {
			return h.unbind(ctx, key)
		},
	}
}

// policyDescriptor implements the policies. VPP changes none in place.
func (h *handler) policyDescriptor() scheduler.Descriptor[*ipsec.SecurityPolicy, struct{}] {
	return scheduler.Descriptor[*ipsec.SecurityPolicy, struct{}]{
		Name:  SPName,
		Model: models.For[*ipsec.SecurityPolicy](),

		Normalize:    normalizePolicy,
		Validate:     validatePolicy,
		Equivalent:   func(_ string, old, new *ipsec.SecurityPolicy) bool { return entryOf(old) == entryOf(new) },
		Dependencies: policyDependencies,
		Claims:       claimSelectors,
		// The key has the addresses, and VPP shows those that a value leaves out.
		Resolve: func(_ string, v *ipsec.SecurityPolicy) *ipsec.SecurityPolicy { return policyFrom(shownAs(entryOf(v))) },

		Create:    h.createPolicy,
		CreateAll: h.createPolicies,
		Delete:    h.deletePolicy,
		Retrieve: readback.Retriever[*ipsec.SecurityPolicy]{
			Read: h.readPolicies, ID: policyID, AsDeclared: asDeclared,
		}.Retrieve,
	}
}

// protectionDescriptor implements the protection of tunnels.
func (h *handler) protectionDescriptor() scheduler.Descriptor[*ipsec.TunnelProtection, struct{}] {
	return scheduler.Descriptor[*ipsec.TunnelProtection, struct{}]{
		Name:  ProtectName,
		Model: models.For[*ipsec.TunnelProtection](),

		Normalize:    normalizeProtection,
		Validate:     validateProtection,
		Equivalent:   equivalentProtection,
		Dependencies: protectionDependencies,
		Claims:       claimNextHop,

		Create:    h.createProtection,
		CreateAll: h.createProtections,
		Update:    h.updateProtection,
		Delete:    h.deleteProtection,
		Retrieve: readback.Retriever[*ipsec.TunnelProtection]{
			Read: h.readProtections, ID: protectionID,
			AsDeclared: func(v, declared *ipsec.TunnelProtection) { v.NextHopAddr = declared.GetNextHopAddr() },
		}.Retrieve,
		RetrieveAfter: []string{iface.Name},
	}
}
