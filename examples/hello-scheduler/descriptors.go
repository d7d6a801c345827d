package main

import (
	"context"
	"fmt"

	"github.com/keyplane/keyplane/models"
	"github.com/keyplane/keyplane/proto/ligato/linux/interfaces"
	"github.com/keyplane/keyplane/proto/ligato/linux/l3"
	"github.com/keyplane/keyplane/scheduler"
)

// register adds interfaces, and routes that look up interfaces in the index.
func register(s *scheduler.Scheduler, p *paper) error {
	index, err := scheduler.Register(s, interfaceDescriptor(p))
	if err != nil {
		return err
	}
	_, err = scheduler.Register(s, routeDescriptor(p, index))
	return err
}

// interfaceDescriptor creates interfaces. Create returns the number of each as its
// metadata.
func interfaceDescriptor(p *paper) scheduler.Descriptor[*interfaces.Interface, int] {
	return scheduler.Descriptor[*interfaces.Interface, int]{
		Name:  "hello-interface",
		Model: models.For[*interfaces.Interface](),
		Create: func(_ context.Context, _ string, v *interfaces.Interface) (int, error) {
			number := p.number()
			return number, p.did("add interface %s, which gets number %d", v.Name, number)
		},
		Delete: func(_ context.Context, _ string, v *interfaces.Interface, number int) error {
			return p.did("remove interface %s, number %d", v.Name, number)
		},
	}
}

// routeDescriptor creates routes. Each depends on its interface and uses its number.
func routeDescriptor(p *paper, index *scheduler.Index[int]) scheduler.Descriptor[*l3.Route, struct{}] {
	links := models.For[*interfaces.Interface]()
	return scheduler.Descriptor[*l3.Route, struct{}]{
		Name:  "hello-route",
		Model: models.For[*l3.Route](),
		Dependencies: func(_ string, v *l3.Route) []scheduler.Dependency {
			return []scheduler.Dependency{{Label: "interface-exists", Key: links.KeyOf(v.OutgoingInterface)}}
		},
		Create: func(_ context.Context, key string, v *l3.Route) (struct{}, error) {
			number, ok := index.Get(v.OutgoingInterface)
			if !ok {
				return struct{}{}, fmt.Errorf("%s is not there, against all promises", v.OutgoingInterface)
			}
			return struct{}{}, p.did("add route to %s by interface number %d", v.DstNetwork, number)
		},
		Delete: func(_ context.Context, _ string, v *l3.Route, _ struct{}) error {
			return p.did("remove route to %s", v.DstNetwork)
		},
	}
}
