package ownership

import (
	"context"
	"strings"

	"go.fd.io/govpp/api"
	"go.fd.io/govpp/binapi/acl"
	vppif "go.fd.io/govpp/binapi/interface"
	"go.fd.io/govpp/binapi/l2"
	"go.fd.io/govpp/binapi/nat44_ed"
	"go.fd.io/govpp/binapi/tapv2"

	"github.com/keyplane/keyplane/descriptors/vpp/conn"
)

// WithTags returns an API that translates between names and signed tags: requests are
// signed, and the sign of this agent is removed from answers. Descriptors see only names.
func WithTags(a conn.API, w *Owner) conn.API {
	if !w.signs() {
		return a
	}
	return signing{a, w}
}

// signing is the conn.API of WithTags.
type signing struct {
	conn.API
	owner *Owner
}

// Call implements conn.API. The request of the caller is not modified.
func (s signing) Call(ctx context.Context, request, reply api.Message) error {
	return s.API.Call(ctx, s.signed(request), reply)
}

// Together implements conn.API. It sends signed copies of the steps and copies the errors
// back.
func (s signing) Batch(ctx context.Context, steps ...*conn.Step) error {
	signed := make([]*conn.Step, len(steps))
	for i, step := range steps {
		one := *step
		one.Request = s.signed(step.Request)
		signed[i] = &one
	}
	err := s.API.Batch(ctx, signed...)
	for i, step := range steps {
		step.Err = signed[i].Err
	}
	return err
}

// signed returns a copy of the request with a tag in place of the name. Requests without a
// tag are returned unchanged.
func (s signing) signed(request api.Message) api.Message {
	switch m := request.(type) {
	case *vppif.SwInterfaceTagAddDel:
		out := *m
		out.Tag = s.owner.Tag(m.Tag)
		return &out
	case *l2.BridgeDomainAddDel:
		out := *m
		out.BdTag = s.owner.Tag(m.BdTag)
		return &out
	case *l2.BridgeDomainAddDelV2:
		out := *m
		out.BdTag = s.owner.Tag(m.BdTag)
		return &out
	case *acl.ACLAddReplace:
		out := *m
		out.Tag = s.owner.Tag(m.Tag)
		return &out
	case *acl.MacipACLAddReplace:
		out := *m
		out.Tag = s.owner.Tag(m.Tag)
		return &out
	case *nat44_ed.Nat44AddDelStaticMapping:
		out := *m
		out.Tag = s.owner.Tag(m.Tag)
		return &out
	case *nat44_ed.Nat44AddDelStaticMappingV2:
		out := *m
		out.Tag = s.owner.Tag(m.Tag)
		return &out
	case *nat44_ed.Nat44AddDelLbStaticMapping:
		out := *m
		out.Tag = s.owner.Tag(m.Tag)
		return &out
	case *nat44_ed.Nat44AddDelIdentityMapping:
		out := *m
		out.Tag = s.owner.Tag(m.Tag)
		return &out
	case *tapv2.TapCreateV3:
		out := *m
		out.Tag = s.terminated(m.Tag)
		return &out
	case *tapv2.TapCreateV2:
		out := *m
		out.Tag = s.terminated(m.Tag)
		return &out
	}
	return request
}

// terminated signs a name that may end with a zero byte: VPP's TAP messages need one if the
// tag fills the field.
func (s signing) terminated(tag string) string {
	name, ended := strings.CutSuffix(tag, "\x00")
	name = s.owner.Tag(name)
	if ended {
		name += "\x00"
	}
	return name
}

// Translate implements conn.Translator.
func (s signing) Translate(detail api.Message) {
	switch m := detail.(type) {
	case *vppif.SwInterfaceDetails:
		m.Tag = s.owner.Name(m.Tag)
	case *l2.BridgeDomainDetails:
		m.BdTag = s.owner.Name(m.BdTag)
	case *acl.ACLDetails:
		m.Tag = s.owner.Name(m.Tag)
	case *acl.MacipACLDetails:
		m.Tag = s.owner.Name(m.Tag)
	case *nat44_ed.Nat44StaticMappingDetails:
		m.Tag = s.owner.Name(m.Tag)
	case *nat44_ed.Nat44LbStaticMappingDetails:
		m.Tag = s.owner.Name(m.Tag)
	case *nat44_ed.Nat44IdentityMappingDetails:
		m.Tag = s.owner.Name(m.Tag)
	}
}
