package iface

import (
	"errors"
	"testing"

	"github.com/keyplane/keyplane/descriptors/vpp/iface/internal/kinds"
	"github.com/keyplane/keyplane/internal/testkit"
	"github.com/keyplane/keyplane/proto/ligato/vpp/interfaces"
	"github.com/keyplane/keyplane/scheduler/conformance"
)

// TestTAPsOfOneName makes TAPs for two containers with one name, which each link has until it is moved.
func TestTAPsOfOneName(t *testing.T) {
	h, _ := onVPP(t, "")
	moved := false
	h.HasLink = func(host string) bool { return host == "eth0" && !moved }
	first := testkit.Parse[*interfaces.Interface](t, `name: "first" type: TAP tap { host_if_name: "eth0" to_microservice: "a" }`)
	second := testkit.Parse[*interfaces.Interface](t, `name: "second" type: TAP tap { host_if_name: "eth0" to_microservice: "b" }`)
	firstMeta, err := h.create(t.Context(), "", first)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := h.create(t.Context(), "", second); !errors.Is(err, kinds.ErrLinkTaken) {
		t.Errorf("it is made on the link of the first: %v", err)
	}
	h.env.TAPHosts.Forget("eth0", "first")
	for _, err := range conformance.Taken(h.retrieve(t.Context(), nil)) {
		if err != nil {
			t.Fatal(err)
		}
	}
	if _, err := h.create(t.Context(), "", second); !errors.Is(err, kinds.ErrLinkTaken) {
		t.Errorf("the next agent makes it on the link of the first: %v", err)
	}
	moved = true
	if _, err := h.create(t.Context(), "", second); err != nil {
		t.Errorf("it is moved: %v", err)
	}
	moved = false // somebody else has a link of that name
	if err := h.delete(t.Context(), "", first, firstMeta); err != nil {
		t.Fatal(err)
	}
	if _, err := h.create(t.Context(), "", first); !errors.Is(err, kinds.ErrLinkTaken) {
		t.Errorf("it is made on the link of the second: %v", err)
	}
}
