package kinds

import (
	"context"
	"fmt"
	"hash/fnv"

	"go.fd.io/govpp/binapi/tapv2"

	"github.com/keyplane/keyplane/descriptors/vpp/conn"
	"github.com/keyplane/keyplane/descriptors/vpp/internal/ifindex"
	"github.com/keyplane/keyplane/proto/ligato/vpp/interfaces"
	"github.com/keyplane/keyplane/scheduler"
)

// DefaultTAPHost is the name of the Linux side of a TAP that declares none. It is short
// enough for any name, and stays the same, so the Linux descriptors can compute it without
// VPP.
func DefaultTAPHost(name string) string {
	sum := fnv.New32a()
	_, _ = sum.Write([]byte(name))
	return fmt.Sprintf("tap-%d", sum.Sum32())
}

// hostOf returns the name of the Linux side, declared or default.
func hostOf(v *interfaces.Interface) string {
	if host := v.GetTap().GetHostIfName(); host != "" {
		return host
	}
	return DefaultTAPHost(v.GetName())
}

// TAPHostOf returns the name of the Linux side of v; empty: v is no TAP.
func TAPHostOf(v *interfaces.Interface) string {
	if v.GetType() != interfaces.Interface_TAP {
		return ""
	}
	return hostOf(v)
}

// tapKind is the kind of TAP. VPP has no message to change a TAP, so each change of the
// link needs a new one.
func tapKind() Kind {
	return Kind{
		Link:         "tap",
		Validate:     validateTAP,
		SameLink:     sameTAP,
		Dependencies: tapDependencies,
		Create:       createTAP,
		Delete: func(ctx context.Context, e *Env, v *interfaces.Interface, meta ifindex.Meta) error {
			err := e.API.Call(ctx, &tapv2.TapDeleteV2{SwIfIndex: meta.SwIfIndex()}, &tapv2.TapDeleteV2Reply{})
			if err == nil {
				e.TAPHosts.Forget(hostOf(v), v.GetName())
			}
			return err
		},
		Retrieve: retrieveTAPs,
	}
}

// validateTAP accepts versions up to 2 and none; VPP makes version 2 of each.
func validateTAP(f *Findings, v *interfaces.Interface) {
	t := v.GetTap()
	f.hostName("tap.host_if_name", t.GetHostIfName())
}

// sameTAP compares the settings of a creation. Sizes that are not declared match any size.
func sameTAP(old, new *interfaces.Interface) bool {
	a, b := old.GetTap(), new.GetTap()
	return hostOf(old) == hostOf(new) && a.GetToMicroservice() == b.GetToMicroservice() &&
		sameSize(a.GetRxRingSize(), b.GetRxRingSize()) && sameSize(a.GetTxRingSize(), b.GetTxRingSize()) &&
		a.GetEnableGso() == b.GetEnableGso() && a.GetEnableTunnel() == b.GetEnableTunnel()
}

// sameSize accepts any size if none is declared.
func sameSize(old, new uint32) bool { return new == 0 || old == new }

// tapDependencies requires the container that the Linux side belongs to.
func tapDependencies(v *interfaces.Interface) []scheduler.Dependency {
	if of := v.GetTap().GetToMicroservice(); of != "" {
		return []scheduler.Dependency{{Label: "microservice-available", Key: "linux/microservice/" + of}}
	}
	return nil
}

// createTAP passes the tag in the message itself, so a TAP is never without it.
func createTAP(ctx context.Context, e *Env, v *interfaces.Interface) (uint32, error) {
	t := v.GetTap()
	request := &tapv2.TapCreateV3{
		ID: ^uint32(0), UseRandomMac: true, NumRxQueues: 1, NumTxQueues: 1,
		RxRingSz: uint16(t.GetRxRingSize()), TxRingSz: uint16(t.GetTxRingSize()),
		HostIfNameSet: true, HostIfName: hostOf(v),
		Tag: v.GetName() + "\x00", // VPP reads the tag up to a zero byte, and does not add one
	}
	if mac, ok := ParseMAC(v.GetPhysAddress()); ok {
		request.UseRandomMac, request.MacAddress = false, mac
	}
	if t.GetEnableGso() {
		request.TapFlags |= tapv2.TAP_API_FLAG_GSO
	}
	if t.GetEnableTunnel() {
		request.TapFlags |= tapv2.TAP_API_FLAG_TUN
	}
	reply := &tapv2.TapCreateV3Reply{}
	err := e.TAPHosts.take(request.HostIfName, v.GetName(), e.HasLink, func() error { return e.API.Call(ctx, request, reply) })
	return uint32(reply.SwIfIndex), err
}

// retrieveTAPs takes the container of a TAP from the desired value, as VPP does not know
// it.
func retrieveTAPs(ctx context.Context, e *Env, all map[uint32]*Found) error {
	details, err := conn.Dump[tapv2.SwInterfaceTapV2Details](ctx, e.API, &tapv2.SwInterfaceTapV2Dump{SwIfIndex: ifindex.All})
	if err != nil {
		return err
	}
	for _, d := range details {
		f := all[d.SwIfIndex]
		if f == nil {
			continue
		}
		f.Value.Type = interfaces.Interface_TAP
		// The Linux descriptors look it up to find the other side.
		f.Meta.TAPHost = d.HostIfName
		f.Value.Link = &interfaces.Interface_Tap{Tap: &interfaces.TapLink{
			Version: 2, HostIfName: d.HostIfName, ToMicroservice: f.Desired.GetTap().GetToMicroservice(),
			RxRingSize: uint32(d.RxRingSz), TxRingSize: uint32(d.TxRingSz),
			EnableGso: d.TapFlags&tapv2.TAP_API_FLAG_GSO != 0, EnableTunnel: d.TapFlags&tapv2.TAP_API_FLAG_TUN != 0,
		}}
	}
	return nil
}
