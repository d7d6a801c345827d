package iface

import (
	"context"

	vppif "go.fd.io/govpp/binapi/interface"
	"google.golang.org/protobuf/types/known/emptypb"

	"github.com/keyplane/keyplane/descriptors/vpp/conn"
	"github.com/keyplane/keyplane/descriptors/vpp/iface/internal/events"
	"github.com/keyplane/keyplane/descriptors/vpp/internal/ifindex"
	"github.com/keyplane/keyplane/descriptors/vpp/keys"
	"github.com/keyplane/keyplane/scheduler"
)

// linkStateDescriptor observes links. An interface has exactly one of two keys: up or
// down.
func (h *handler) linkStateDescriptor() scheduler.Descriptor[*emptypb.Empty, struct{}] {
	return scheduler.Descriptor[*emptypb.Empty, struct{}]{
		Name:          LinkStateName,
		Prefix:        keys.Parts,
		Match:         func(key string) bool { _, _, ok := keys.ParseLinkState(key); return ok },
		Retrieve:      h.retrieveLinkStates,
		RetrieveAfter: []string{Name},
	}
}

// retrieveLinkStates yields one key per interface in VPP, also for those of others: values
// may depend on their links. Events report changes in between.
func (h *handler) retrieveLinkStates(ctx context.Context, _ []scheduler.Desired[*emptypb.Empty]) scheduler.Retrieved[*emptypb.Empty, struct{}] {
	return func(yield func(scheduler.Found[*emptypb.Empty, struct{}], error) bool) {
		details, err := conn.Dump[vppif.SwInterfaceDetails](ctx, h.API, &vppif.SwInterfaceDump{SwIfIndex: ifindex.All})
		if err != nil {
			yield(scheduler.Found[*emptypb.Empty, struct{}]{}, err)
			return
		}
		tags := ifindex.TagsOf(details)
		for _, d := range details {
			one := scheduler.Found[*emptypb.Empty, struct{}]{
				Key: keys.Interface(tags.NameOf(d)).LinkState(events.LinkIsUp(d.Flags)), Value: &emptypb.Empty{}, Foreign: true,
			}
			if !yield(one, nil) {
				return
			}
		}
	}
}
