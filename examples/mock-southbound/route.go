package main

import (
	"github.com/keyplane/keyplane/models"
	"github.com/keyplane/keyplane/proto/ligato/vpp/l3"
	"github.com/keyplane/keyplane/scheduler"
)

// registerRoutes adds routes that leave by an interface.
func registerRoutes(s *scheduler.Scheduler, m *memory) error {
	return keep(s, m, scheduler.Descriptor[*l3.Route, uint32]{
		Name:         "mock-route",
		Model:        models.For[*l3.Route](),
		Dependencies: outgoing,
	}, false)
}

// outgoing requires the interface of a route, if it names one.
func outgoing(_ string, v *l3.Route) []scheduler.Dependency {
	if v.GetOutgoingInterface() == "" {
		return nil
	}
	return []scheduler.Dependency{{Label: "interface-exists", Key: interfaceKey(v.GetOutgoingInterface())}}
}
