package ownership

import (
	"context"
	"strings"

	"go.fd.io/govpp/api"
	vppif "go.fd.io/govpp/binapi/interface"
	"go.fd.io/govpp/binapi/l2"
	"go.fd.io/govpp/binapi/tapv2"

	"github.com/keyplane/keyplane/descriptors/vpp/conn"
)

// Over is an API whose tags are names.
func WithTags(a conn.API, w *Owner) conn.API {
	if !w.signs() {
		return a
	}
	return signing{a, w}
}

type signing struct {
	conn.API
	owner *Owner
}

// Call implements conn.API.
func (s signing) Call(ctx context.Context, request, reply api.Message) error {
	return s.API.Call(ctx, s.signed(request), reply)
}

// Batch implements conn.API.
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

// signed is a request with a tag in place of a name. The request itself stays as it is.
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

// terminated is Tag of a name that a zero byte may end.
func (s signing) terminated(tag string) string {
	name, ended := strings.CutSuffix(tag, "\x00")
	if name = s.owner.Tag(name); ended {
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
	}
}
