package acl

import (
	"context"
	"slices"
	"testing"

	"go.fd.io/govpp/api"
	vppacl "go.fd.io/govpp/binapi/acl"
	"google.golang.org/protobuf/types/known/emptypb"

	"github.com/keyplane/keyplane/descriptors/vpp/conn"
	"github.com/keyplane/keyplane/descriptors/vpp/keys"
	"github.com/keyplane/keyplane/internal/testkit"
	"github.com/keyplane/keyplane/proto/ligato/vpp/acl"
)

// after is an API that calls do once, when VPP has told the lists of all interfaces.
type after struct {
	conn.API
	do func()
}

func (a *after) Details(ctx context.Context, request, detail api.Message, take conn.Take) error {
	err := a.API.Details(ctx, request, detail, take)
	if q, is := request.(*vppacl.ACLInterfaceListDump); is && q.SwIfIndex == allInterfaces && a.do != nil {
		do := a.do
		a.do = nil
		do()
	}
	return err
}

// Somebody looks while a verb attaches a list. The verbs afterwards know what it has attached.
func TestLookBesideVerb(t *testing.T) {
	h, _ := onVPP(t, "")
	for _, name := range []string{"a", "b"} {
		meta, err := h.create(t.Context(), "", testkit.Parse[*acl.ACL](t, `name: "`+name+`" rules: { ip_rule: {} }`))
		if err != nil {
			t.Fatal(err)
		}
		h.lists.(access)[name] = meta
	}
	key := func(list string) string { return keys.ACLInterface{ACL: list, Interface: "if1"}.Key() }
	attach := func(list string) {
		if _, err := h.attach(t.Context(), key(list), &emptypb.Empty{}); err != nil {
			t.Fatal(err)
		}
	}
	attach("a")
	link, _ := h.Interfaces.Get("if1")
	before := h.attached.at(link.SwIfIndex())
	h.API = &after{h.API, func() { attach("b") }}
	for _, err := range h.retrieve(t.Context(), nil) {
		if err != nil {
			t.Fatal(err)
		}
	}
	if h.attached.at(link.SwIfIndex()) != before {
		t.Error("verbs from before the look and after it take turns of their own")
	}
	if err := h.detach(t.Context(), key("b"), &emptypb.Empty{}, struct{}{}); err != nil {
		t.Fatal(err)
	}
	if has := vector(t, h, "if1"); !slices.Equal(has, []string{"a"}) {
		t.Errorf("after b is detached, the interface has %q; expected a", has)
	}
}
