package main

import (
	"github.com/keyplane/keyplane/models"
	"github.com/keyplane/keyplane/proto/ligato/vpp/l2"
	"github.com/keyplane/keyplane/scheduler"
)

// registerFIB adds the entries in the MAC address table of a bridge domain.
func registerFIB(s *scheduler.Scheduler, m *memory) error {
	return keep(s, m, scheduler.Descriptor[*l2.FIBEntry, uint32]{
		Name:         "mock-fib",
		Model:        models.For[*l2.FIBEntry](),
		Dependencies: bridged,
	}, false)
}

// bridged returns the dependencies of an entry: its domain and, if it forwards, an
// interface in that domain.
func bridged(_ string, v *l2.FIBEntry) []scheduler.Dependency {
	deps := []scheduler.Dependency{{Label: "bridge-domain-exists", Key: bridgeDomainKey(v.GetBridgeDomain())}}
	if v.GetAction() == l2.FIBEntry_FORWARD {
		deps = append(deps, scheduler.Dependency{
			Label: "interface-is-bridged", Key: bindingKey(v.GetBridgeDomain(), v.GetOutgoingInterface())})
	}
	return deps
}
