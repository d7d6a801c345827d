package main

import (
	"google.golang.org/protobuf/proto"

	"github.com/keyplane/keyplane/models"
	"github.com/keyplane/keyplane/proto/ligato/vpp/l2"
	"github.com/keyplane/keyplane/scheduler"
)

// bindingPrefix begins the keys of the derived values; domain and interface follow.
const bindingPrefix = "vpp/bd/"

// bridgeDomainKey returns the key of a bridge domain.
func bridgeDomainKey(name string) string { return models.For[*l2.BridgeDomain]().KeyOf(name) }

// bindingKey is the key of an interface in a bridge domain.
func bindingKey(domain, iface string) string { return bindingPrefix + domain + "/interface/" + iface }

// registerBridgeDomains adds the domain itself, which has no dependency, and the binding
// of each interface, which depends on that interface. So a domain does not wait for all of
// its interfaces.
func registerBridgeDomains(s *scheduler.Scheduler, m *memory) error {
	err := keep(s, m, scheduler.Descriptor[*l2.BridgeDomain, uint32]{
		Name:       "mock-bridge-domain",
		Model:      models.For[*l2.BridgeDomain](),
		Equivalent: sameBridgeDomain,
		Derived:    bindings,
	}, true)
	if err != nil {
		return err
	}
	return keep(s, m, scheduler.Descriptor[*l2.BridgeDomain_Interface, uint32]{
		Name:         "mock-binding",
		Prefix:       bindingPrefix,
		Dependencies: boundInterface,
	}, false)
}

// sameBridgeDomain leaves out the interfaces, which are derived values.
func sameBridgeDomain(_ string, old, new *l2.BridgeDomain) bool {
	a, b := proto.CloneOf(old), proto.CloneOf(new)
	a.Interfaces, b.Interfaces = nil, nil
	return proto.Equal(a, b)
}

// bindings derives one value per interface, so one that is missing does not delay the
// domain.
func bindings(_ string, v *l2.BridgeDomain) (out []scheduler.KeyValue) {
	for _, i := range v.GetInterfaces() {
		out = append(out, scheduler.KeyValue{Key: bindingKey(v.GetName(), i.GetName()), Value: i})
	}
	return out
}

// boundInterface requires the interface of a binding.
func boundInterface(_ string, v *l2.BridgeDomain_Interface) []scheduler.Dependency {
	return []scheduler.Dependency{{Label: "interface-exists", Key: interfaceKey(v.GetName())}}
}
