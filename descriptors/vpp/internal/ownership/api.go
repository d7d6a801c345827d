package ownership

import (
	"context"
	"reflect"
	"strings"

	"go.fd.io/govpp/api"
	"go.fd.io/govpp/binapi/acl"
	vppif "go.fd.io/govpp/binapi/interface"
	"go.fd.io/govpp/binapi/l2"
	"go.fd.io/govpp/binapi/nat44_ed"
	"go.fd.io/govpp/binapi/nat44_ei"
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

// Batch implements conn.API. It sends signed copies of the steps and copies the errors
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
	if tagOf(request) == nil {
		return request
	}
	original := reflect.ValueOf(request).Elem()
	out := reflect.New(original.Type())
	out.Elem().Set(original)
	signed := out.Interface().(api.Message)
	tag := tagOf(signed)
	switch signed.(type) {
	case *tapv2.TapCreateV2, *tapv2.TapCreateV3:
		*tag = s.terminated(*tag)
	default:
		*tag = s.owner.Tag(*tag)
	}
	return signed
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
	if tag := tagOf(detail); tag != nil {
		*tag = s.owner.Name(*tag)
	}
}

// tagOf returns the field of a request or of an answer that holds the tag, or nil if the message
// has none. Each message of VPP with a tag that this agent writes or reads must be here: without
// its sign, an item would belong to nobody after a restart.
func tagOf(m api.Message) *string {
	switch m := m.(type) {
	case *vppif.SwInterfaceTagAddDel:
		return &m.Tag
	case *vppif.SwInterfaceDetails:
		return &m.Tag
	case *tapv2.TapCreateV2:
		return &m.Tag
	case *tapv2.TapCreateV3:
		return &m.Tag
	case *l2.BridgeDomainAddDel:
		return &m.BdTag
	case *l2.BridgeDomainAddDelV2:
		return &m.BdTag
	case *l2.BridgeDomainDetails:
		return &m.BdTag
	case *acl.ACLAddReplace:
		return &m.Tag
	case *acl.ACLDetails:
		return &m.Tag
	case *acl.MacipACLAddReplace:
		return &m.Tag
	case *acl.MacipACLDetails:
		return &m.Tag
	}
	return tagOfNAT(m)
}

// tagOfNAT is tagOf for the messages of both kinds of NAT44.
func tagOfNAT(m api.Message) *string {
	switch m := m.(type) {
	case *nat44_ed.Nat44AddDelStaticMapping:
		return &m.Tag
	case *nat44_ed.Nat44AddDelStaticMappingV2:
		return &m.Tag
	case *nat44_ed.Nat44StaticMappingDetails:
		return &m.Tag
	case *nat44_ed.Nat44AddDelLbStaticMapping:
		return &m.Tag
	case *nat44_ed.Nat44LbStaticMappingDetails:
		return &m.Tag
	case *nat44_ed.Nat44AddDelIdentityMapping:
		return &m.Tag
	case *nat44_ed.Nat44IdentityMappingDetails:
		return &m.Tag
	case *nat44_ei.Nat44EiAddDelStaticMapping:
		return &m.Tag
	case *nat44_ei.Nat44EiStaticMappingDetails:
		return &m.Tag
	case *nat44_ei.Nat44EiAddDelIdentityMapping:
		return &m.Tag
	case *nat44_ei.Nat44EiIdentityMappingDetails:
		return &m.Tag
	}
	return nil
}
