package iface

import (
	"context"
	"errors"

	"go.fd.io/govpp/api"
	vppif "go.fd.io/govpp/binapi/interface"
	"google.golang.org/protobuf/types/known/emptypb"

	"github.com/keyplane/keyplane/descriptors/vpp/iface/internal/kinds"
	"github.com/keyplane/keyplane/descriptors/vpp/iface/internal/tables"
	"github.com/keyplane/keyplane/descriptors/vpp/keys"
	"github.com/keyplane/keyplane/scheduler"
)

// vrfDescriptor binds interfaces to VRF tables. It is a value of its own: if a table does not exist yet, the interface is created, and only its addresses wait.
func (h *handler) vrfDescriptor() scheduler.Descriptor[*emptypb.Empty, struct{}] {
	return scheduler.Descriptor[*emptypb.Empty, struct{}]{
		Name:   VRFName,
		Prefix: keys.Parts,
		Match:  func(key string) bool { _, ok := keys.ParseVRF(key); return ok },

		Dependencies: vrfDependencies,

		Create: func(ctx context.Context, key string, _ *emptypb.Empty) (struct{}, error) {
			return struct{}{}, h.enterVRF(ctx, key)
		},
		Delete: func(ctx context.Context, key string, _ *emptypb.Empty, _ struct{}) error {
			return h.leaveVRF(ctx, key)
		},
		Retrieve: h.retrieveVRFs, RetrieveSome: h.retrieveSomeVRFs,
		RetrieveAfter: []string{Name},
	}
}

// vrfDependencies are the tables of the versions that the interface uses. Table 0 always
// exists. A borrower waits until its lender is in its VRF.
func vrfDependencies(key string, _ *emptypb.Empty) (deps []scheduler.Dependency) {
	v, _ := keys.ParseVRF(key)
	if v.From != "" {
		return []scheduler.Dependency{{Label: "numbered-interface-assigned-to-VRF", Prefixes: []string{keys.Interface(v.From).VRFs()}}}
	}
	if v.ID != 0 && v.IPv4 {
		deps = append(deps, scheduler.Dependency{Label: "vrf-table-v4-exists", Key: keys.VRFTable(v.ID, false)})
	}
	if v.ID != 0 && v.IPv6 {
		deps = append(deps, scheduler.Dependency{Label: "vrf-table-v6-exists", Key: keys.VRFTable(v.ID, true)})
	}
	return deps
}

// inVRF is the dependency on the membership of an interface in a VRF. One that was read back may be in two VRFs, one for
// each IP version. What has an address needs the one of its version: VPP refuses to change the table under it.
func inVRF(name string, version func(membership string) bool) scheduler.Dependency {
	return scheduler.Dependency{Label: "interface-assigned-to-vrf-table", Prefixes: []string{keys.Interface(name).VRFs()}, Match: version}
}

// enterVRF binds the interface to its tables. An interface that borrows its address uses
// the tables of the lender.
func (h *handler) enterVRF(ctx context.Context, key string) error {
	v, _ := keys.ParseVRF(key)
	h.setEntered(v.Interface, key)
	anew := h.table.Used(v.Interface)
	if v.From == "" {
		return h.setTables(ctx, v, anew)
	}
	err := h.enterLenders(ctx, v)
	if err != nil {
		// Nothing else tells Retrieve that the borrower is not in the tables.
		h.forgetEntered(v.Interface, key)
	}
	return err
}

// enterLenders binds an interface that borrows its address to the tables of the lender.
func (h *handler) enterLenders(ctx context.Context, v keys.VRF) error {
	meta, ok := h.index.Get(v.Interface)
	if !ok {
		return kinds.NotThere(v.Interface)
	}
	lender, ok := h.index.Get(v.From)
	if !ok {
		return kinds.NotThere(v.From)
	}
	for _, ipv6 := range []bool{false, true} {
		its := &vppif.SwInterfaceGetTableReply{}
		err := h.API.Call(ctx, &vppif.SwInterfaceGetTable{SwIfIndex: lender.SwIfIndex(), IsIPv6: ipv6}, its)
		if err == nil {
			err = h.setBorrowersTable(ctx, v.Interface, meta, ipv6, its.VrfID)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// setBorrowersTable is setTable for an interface that may still borrow from its former lender. VPP
// refuses another table then, so the loan ends. The next one follows: an interface gets its lender
// after it has entered the VRF.
func (h *handler) setBorrowersTable(ctx context.Context, name string, meta Meta, ipv6 bool, id uint32) error {
	err := h.setTable(ctx, meta, ipv6, id)
	if !errors.Is(err, api.ADDRESS_FOUND_FOR_INTERFACE) {
		return err
	}
	if err := h.setUnnumbered(ctx, keys.Interface(name).Unnumbered(), nil, false); err != nil {
		return err
	}
	return h.bind(ctx, meta, ipv6, id)
}

// setEntered notes the VRF that an interface entered last.
func (h *handler) setEntered(name, key string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.entered == nil {
		h.entered = map[string]string{}
	}
	h.entered[name] = key
}

// replaceEntered is setEntered unless the interface has left or entered a VRF meanwhile: values may come and go while they are
// read. An interface of which nothing is noted stays so.
func (h *handler) replaceEntered(name, was, key string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if was != "" && h.entered[name] == was {
		h.entered[name] = key
	}
}

// forgetEntered undoes setEntered, unless the interface has entered another VRF since. An empty
// key stands for any VRF: a new interface has entered none, but one of the same name may have,
// in a VPP that has ended.
func (h *handler) forgetEntered(name, key string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if key == "" || h.entered[name] == key {
		delete(h.entered, name)
	}
}

// clearEntered notes that an interface leaves a VRF. It returns v with the IP versions to
// leave: those without another VRF that was entered since.
func (h *handler) clearEntered(v keys.VRF, key string) keys.VRF {
	v = tables.Versions(v)
	h.mu.Lock()
	defer h.mu.Unlock()
	last, known := h.entered[v.Interface]
	now, _ := keys.ParseVRF(last)
	if now.From != "" {
		_, known = h.index.Get(now.From) // without its lender, an interface is in no VRF that it entered
	}
	if known && last != key {
		now = tables.Versions(now)
		v.IPv4, v.IPv6 = v.IPv4 && !now.IPv4, v.IPv6 && !now.IPv6
		return v
	}
	delete(h.entered, v.Interface)
	return v
}

// leaveVRF binds the interface to table 0, which VPP uses for none.
func (h *handler) leaveVRF(ctx context.Context, key string) error {
	v, _ := keys.ParseVRF(key)
	v = h.clearEntered(v, key)
	v.ID = 0
	err := h.setTables(ctx, v, false)
	switch {
	case errors.Is(err, api.INVALID_SW_IF_INDEX) || errors.Is(err, kinds.ErrNotThere):
		return nil
	case errors.Is(err, api.ADDRESS_FOUND_FOR_INTERFACE):
		return h.ignoreIfLinkLocal(ctx, v.Interface, err)
	}
	return err
}

// ignoreIfLinkLocal returns err unless the interface only has its link-local address. VPP
// neither lists nor deletes that, so the interface stays in its VRF until it is deleted.
func (h *handler) ignoreIfLinkLocal(ctx context.Context, name string, err error) error {
	meta, ok := h.index.Get(name)
	if !ok {
		return nil
	}
	for _, ipv6 := range []bool{false, true} {
		if has, lookErr := h.addressesOf(ctx, meta, ipv6); lookErr != nil || len(has) > 0 {
			return errors.Join(err, lookErr)
		}
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.stuck == nil {
		h.stuck = map[uint32]string{}
	}
	h.stuck[meta.Index] = name
	return nil
}

// setTables binds the interface to the tables of a VRF.
func (h *handler) setTables(ctx context.Context, v keys.VRF, anew bool) error {
	meta, ok := h.index.Get(v.Interface)
	if !ok {
		return kinds.NotThere(v.Interface)
	}
	set := h.setTable
	if anew {
		set = h.setFirstTable
	}
	for _, ipv6 := range []bool{false, true} {
		if ipv6 && !v.IPv6 || !ipv6 && !v.IPv4 {
			continue
		}
		if err := set(ctx, meta, ipv6, v.ID); err != nil {
			return err
		}
	}
	return nil
}

// setTable does nothing if the interface is bound to the table already. VPP refuses that
// request while the interface has an address.
func (h *handler) setTable(ctx context.Context, meta Meta, ipv6 bool, id uint32) error {
	now := &vppif.SwInterfaceGetTableReply{}
	if err := h.API.Call(ctx, &vppif.SwInterfaceGetTable{SwIfIndex: meta.SwIfIndex(), IsIPv6: ipv6}, now); err != nil || now.VrfID == id {
		return err
	}
	return h.bind(ctx, meta, ipv6, id)
}

// setFirstTable is setTable for a new interface, which is in VRF 0 (VPP ip4_forward.c,
// ip4_sw_interface_add_del; IPv6 alike).
func (h *handler) setFirstTable(ctx context.Context, meta Meta, ipv6 bool, id uint32) error {
	if id == 0 {
		return nil
	}
	return h.bind(ctx, meta, ipv6, id)
}

// bind sends the request without a look at the present table.
func (h *handler) bind(ctx context.Context, meta Meta, ipv6 bool, id uint32) error {
	return h.API.Call(ctx, &vppif.SwInterfaceSetTable{SwIfIndex: meta.SwIfIndex(), IsIPv6: ipv6, VrfID: id}, &vppif.SwInterfaceSetTableReply{})
}
