package main

import (
	"github.com/keyplane/keyplane/models"
	"github.com/keyplane/keyplane/proto/ligato/vpp/l2"
	"github.com/keyplane/keyplane/scheduler"
)

// registerFIB adds entries of a bridge domain's table of MAC addresses.
func registerFIB(s *scheduler.Scheduler, m *memory) error {
	return keep(s, m, scheduler.Descriptor[*l2.FIBEntry, uint32]{
		Name:         "mock-fib",
		Model:        models.For[*l2.FIBEntry](),
		Dependencies: bridged,
	}, false)
}

// bridged is the domain and, to forward by it, an interface in that domain.
func bridged(_ string, v *l2.FIBEntry) []scheduler.Dependency {
	deps := []scheduler.Dependency{{Label: "bridge-domain-exists", Key: bridgeDomainKey(v.GetBridgeDomain())}}
	if v.GetAction() == l2.FIBEntry_FORWARD {
		deps = append(deps, scheduler.Dependency{
			Label: "interface-is-bridged", Key: bindingKey(v.GetBridgeDomain(), v.GetOutgoingInterface())})
	}
	return deps
}
