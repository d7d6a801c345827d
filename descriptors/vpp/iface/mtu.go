package iface

import (
	"context"
	"fmt"
	"sync"

	vppif "go.fd.io/govpp/binapi/interface"

	"github.com/keyplane/keyplane/descriptors/vpp/conn"
	"github.com/keyplane/keyplane/descriptors/vpp/iface/internal/kinds"
)

// mostDefault is the MTU in bytes that VPP gives to interfaces whose link can carry it: tunnels
// have links of more than 65,000 bytes.
const mostDefault = 9000

// A declaredMTU is what is known of the MTU of one interface that a value has declared.
type declaredMTU struct {
	set    uint32 // the declared MTU, in bytes
	before uint32 // VPP's own MTU, read when the interface was made; 0: not known
}

// declaredMTUs has the interfaces in VPP whose MTU a value has declared, by name. A value that
// does not declare an MTU accepts any, but not one that an earlier version of it has left. VPP
// cannot tell the two apart, so they are remembered until the agent stops. Its methods are safe
// for concurrent use; the zero value is empty.
type declaredMTUs struct {
	mu     sync.Mutex // guards byName
	byName map[string]declaredMTU
}

// created notes VPP's own MTU of a new interface.
func (d *declaredMTUs) created(name string, before uint32) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.byName == nil {
		d.byName = map[string]declaredMTU{}
	}
	d.byName[name] = declaredMTU{before: before}
}

// declared notes that the interface has a declared MTU.
func (d *declaredMTUs) declared(name string, mtu uint32) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.byName == nil {
		d.byName = map[string]declaredMTU{}
	}
	one := d.byName[name]
	one.set = mtu
	d.byName[name] = one
}

// restored notes that the interface has VPP's own MTU again.
func (d *declaredMTUs) restored(name string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if one, known := d.byName[name]; known {
		d.byName[name] = declaredMTU{before: one.before}
	}
}

// deleted forgets an interface.
func (d *declaredMTUs) deleted(name string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.byName, name)
}

// left returns what is known of an interface whose present MTU an earlier value has declared, and
// whether that is so.
func (d *declaredMTUs) left(name string, now uint32) (declaredMTU, bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	one := d.byName[name]
	return one, one.set != 0 && one.set == now && one.set != one.before
}

// noteMTU notes the MTU of an interface that its value declares: this agent may have set it before
// a restart.
func (h *handler) noteMTU(f *kinds.Found) {
	if mtu := f.Value.GetMtu(); f.Desired != nil && mtu != 0 && h.mtu(f.Desired) == mtu {
		h.mtus.declared(f.Value.GetName(), mtu)
	}
}

// restoreMTU gives an interface that stays VPP's own MTU again, if an earlier value has declared the present one. If the
// agent did not make the interface, it takes the MTU that VPP gives to a new one.
func (h *handler) restoreMTU(ctx context.Context, meta Meta, name string, now uint32) error {
	one, left := h.mtus.left(name, now)
	if !left {
		return nil
	}
	mtu := one.before
	if mtu == 0 {
		all, err := conn.Dump[vppif.SwInterfaceDetails](ctx, h.API, &vppif.SwInterfaceDump{SwIfIndex: meta.SwIfIndex()})
		if err != nil {
			return err
		}
		if len(all) != 1 {
			return fmt.Errorf("%w: VPP has no interface %d any more", kinds.ErrNotThere, meta.Index)
		}
		mtu = min(uint32(all[0].LinkMtu), mostDefault)
	}
	request := &vppif.SwInterfaceSetMtu{SwIfIndex: meta.SwIfIndex(), Mtu: []uint32{mtu, 0, 0, 0}}
	if err := h.API.Call(ctx, request, &vppif.SwInterfaceSetMtuReply{}); err != nil {
		return err
	}
	h.mtus.restored(name)
	return nil
}
