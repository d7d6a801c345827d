package main

import (
	"strings"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/emptypb"

	"github.com/keyplane/keyplane/models"
	"github.com/keyplane/keyplane/proto/ligato/vpp/interfaces"
	"github.com/keyplane/keyplane/scheduler"
)

// Keys of values derived from interfaces, and of Linux interfaces.
const (
	interfacePrefix  = "vpp/interface/"
	unnumberedPrefix = "vpp/interface/unnumbered/"
	hostPrefix       = "linux/interface/host-name/"
)

// interfaceKey returns the key of an interface.
func interfaceKey(name string) string { return models.For[*interfaces.Interface]().KeyOf(name) }

// addressPrefix is the prefix of the keys of an interface's addresses.
func addressPrefix(name string) string { return interfacePrefix + name + "/address/" }

// registerInterfaces adds the descriptors of interfaces and of their parts.
func registerInterfaces(s *scheduler.Scheduler, m *memory) error {
	type none = struct{}
	err := keep(s, m, scheduler.Descriptor[*interfaces.Interface, uint32]{
		Name:         "mock-interface",
		Model:        models.For[*interfaces.Interface](),
		Equivalent:   sameInterface,
		Recreate:     otherLink,
		Dependencies: hostInterface,
		Derived:      partsOfInterface,
	}, true)
	if err != nil {
		return err
	}
	err = keep(s, m, scheduler.Descriptor[*emptypb.Empty, uint32]{
		Name:   "mock-address",
		Prefix: interfacePrefix,
		Match:  func(key string) bool { return strings.Contains(key, "/address/") },
	}, false)
	if err != nil {
		return err
	}
	err = keep(s, m, scheduler.Descriptor[*interfaces.Interface_Unnumbered, uint32]{
		Name:         "mock-unnumbered",
		Prefix:       unnumberedPrefix,
		Dependencies: donor,
	}, false)
	if err != nil {
		return err
	}
	// Linux interfaces are only observed: there is no verb and no Retrieve.
	_, err = scheduler.Register(s, scheduler.Descriptor[*emptypb.Empty, none]{Name: "mock-host", Prefix: hostPrefix})
	return err
}

// sameInterface ignores derived values, which have descriptors of their own.
func sameInterface(_ string, old, new *interfaces.Interface) bool {
	return proto.Equal(bare(old), bare(new))
}

// bare returns v without the fields that only make derived values.
func bare(v *interfaces.Interface) *interfaces.Interface {
	v = proto.CloneOf(v)
	v.IpAddresses, v.Unnumbered = nil, nil
	return v
}

// otherLink reports a change of type, which VPP cannot make in place.
func otherLink(_ string, old, new *interfaces.Interface, _ uint32) bool {
	a, b := &interfaces.Interface{Type: old.GetType(), Link: old.GetLink()}, &interfaces.Interface{Type: new.GetType(), Link: new.GetLink()}
	return !proto.Equal(a, b)
}

// hostInterface requires the host link of an AF_PACKET interface.
func hostInterface(_ string, v *interfaces.Interface) []scheduler.Dependency {
	host := v.GetAfpacket().GetHostIfName()
	if host == "" {
		return nil
	}
	return []scheduler.Dependency{{Label: "host-interface-exists", Key: hostPrefix + host}}
}

// partsOfInterface derives the addresses, and the borrowing of one.
func partsOfInterface(_ string, v *interfaces.Interface) (out []scheduler.KeyValue) {
	for _, a := range v.GetIpAddresses() {
		out = append(out, scheduler.KeyValue{Key: addressPrefix(v.GetName()) + "static/" + a, Value: &emptypb.Empty{}})
	}
	if u := v.GetUnnumbered(); u != nil {
		out = append(out, scheduler.KeyValue{Key: unnumberedPrefix + v.GetName(), Value: u})
	}
	return out
}

// donor depends on any address of the interface that lends its address.
func donor(_ string, v *interfaces.Interface_Unnumbered) []scheduler.Dependency {
	return []scheduler.Dependency{{Label: "lender-has-address", Prefixes: []string{addressPrefix(v.GetInterfaceWithIp())}}}
}
