package agent

import (
	"context"
	"time"

	"github.com/keyplane/keyplane/descriptors/linux"
	"github.com/keyplane/keyplane/descriptors/linux/iface"
	"github.com/keyplane/keyplane/descriptors/vpp"
	"github.com/keyplane/keyplane/models"
	"github.com/keyplane/keyplane/northbound/grpc"
	"github.com/keyplane/keyplane/proto/ligato/configurator"
	linuxpb "github.com/keyplane/keyplane/proto/ligato/linux"
	linuxif "github.com/keyplane/keyplane/proto/ligato/linux/interfaces"
	vpppb "github.com/keyplane/keyplane/proto/ligato/vpp"
	vppif "github.com/keyplane/keyplane/proto/ligato/vpp/interfaces"
	"github.com/keyplane/keyplane/scheduler"
)

// withEvents adds to the gRPC services what happens in Linux and VPP.
func withEvents(o grpc.Options, p Parts) grpc.Options {
	type add = func(...*configurator.Notification)
	if p.VPP != nil {
		states := p.VPP.States()
		o.Events = append(o.Events, func(ctx context.Context, to add) { followVPP(ctx, states, to) })
	}
	if p.Linux != nil {
		o.Events = append(o.Events, func(ctx context.Context, to add) { followLinux(ctx, o.Scheduler, p.Linux.LinkState, to) })
	}
	return o
}

// relistVPP is how often the states of VPP's interfaces are read without an event: VPP sends
// none for an interface that was deleted, and none after a restart.
const relistVPP = 10 * time.Second

// followVPP reports interfaces of VPP that come, go, or change their status. While VPP is not
// connected, nothing is known, and nothing is reported.
func followVPP(ctx context.Context, states *vpp.States, add func(...*configurator.Notification)) {
	again := time.NewTicker(relistVPP)
	defer again.Stop()
	var known map[string]*vppif.InterfaceState
	for {
		now, err := states.Read(ctx) // an error is that of VPP, which the connection reports
		if err == nil && now != nil {
			for _, changed := range changedVPP(known, now) {
				add(&configurator.Notification{Notification: &configurator.Notification_VppNotification{VppNotification: &vpppb.Notification{
					Interface: &vppif.InterfaceNotification{Type: vppif.InterfaceNotification_UPDOWN, State: changed},
				}}})
			}
			known = now
		}
		select {
		case <-states.Turned.C():
		case <-again.C:
		case <-ctx.Done():
			return
		}
	}
}

// changedVPP returns the new states of interfaces with another status, and of those that are
// gone, as DELETED.
func changedVPP(before, now map[string]*vppif.InterfaceState) (out []*vppif.InterfaceState) {
	for name, state := range now {
		old := before[name]
		if old == nil || old.AdminStatus != state.AdminStatus || old.OperStatus != state.OperStatus || old.IfIndex != state.IfIndex {
			out = append(out, state)
		}
	}
	for name, old := range before {
		if now[name] == nil {
			out = append(out, &vppif.InterfaceState{
				Name: name, InternalName: old.InternalName, Type: old.Type, IfIndex: old.IfIndex, LastChange: time.Now().Unix(),
				AdminStatus: vppif.InterfaceState_DELETED, OperStatus: vppif.InterfaceState_DELETED,
			})
		}
	}
	return out
}

// A linkReader reads the link of a Linux interface from the kernel.
type linkReader func(iface.Meta) (linux.LinkState, error)

// followLinux reports Linux interfaces that come, go, or are enabled or disabled, with the state that their
// links have then.
func followLinux(ctx context.Context, sched *scheduler.Scheduler, link linkReader, add func(...*configurator.Notification)) {
	watch := sched.Watch(models.For[*linuxif.Interface]().Prefix())
	defer watch.Close()
	known := map[string]*linuxif.InterfaceState{} // by key
	for {
		news, err := watch.Next(ctx)
		if err != nil {
			return
		}
		for _, st := range news {
			changed := changedLinux(known[st.Key], st, link)
			if changed == nil {
				continue
			}
			known[st.Key] = changed
			if changed.AdminStatus == linuxif.InterfaceState_DELETED {
				delete(known, st.Key)
			}
			add(&configurator.Notification{Notification: &configurator.Notification_LinuxNotification{LinuxNotification: &linuxpb.Notification{
				Interface: &linuxif.InterfaceNotification{Type: linuxif.InterfaceNotification_UPDOWN, State: changed},
			}}})
		}
	}
}

// changedLinux returns the new state of an interface; nil: it has not changed.
func changedLinux(before *linuxif.InterfaceState, st *scheduler.Status, link linkReader) *linuxif.InterfaceState {
	v, applied := st.Actual.(*linuxif.Interface)
	if !applied {
		if before == nil {
			return nil
		}
		return &linuxif.InterfaceState{
			Name: before.Name, InternalName: before.InternalName, Type: before.Type, IfIndex: before.IfIndex, LastChange: time.Now().Unix(),
			AdminStatus: linuxif.InterfaceState_DELETED, OperStatus: linuxif.InterfaceState_DELETED,
		}
	}
	now := &linuxif.InterfaceState{Name: v.Name, Type: v.Type, PhysAddress: v.PhysAddress, Mtu: v.Mtu, AdminStatus: linuxif.InterfaceState_DOWN, LastChange: time.Now().Unix()}
	if v.Enabled {
		now.AdminStatus = linuxif.InterfaceState_UP
	}
	meta, known := st.Meta.(iface.Meta)
	if known {
		now.InternalName, now.IfIndex = meta.HostName, int32(meta.Index)
	}
	if before != nil && before.AdminStatus == now.AdminStatus && before.IfIndex == now.IfIndex && before.InternalName == now.InternalName {
		return nil
	}
	if known {
		describeLink(now, meta, link)
	}
	return now
}

// describeLink adds what the kernel knows and the value need not say: the kernel chooses the MAC address and
// the MTU of an interface that was declared without. A link that is gone meanwhile adds nothing; its removal
// is the next event.
func describeLink(state *linuxif.InterfaceState, meta iface.Meta, link linkReader) {
	is, err := link(meta)
	if err != nil {
		return
	}
	state.PhysAddress, state.Mtu, state.OperStatus = is.MAC, uint32(is.MTU), linuxif.InterfaceState_DOWN
	if is.Running {
		state.OperStatus = linuxif.InterfaceState_UP
	}
}
