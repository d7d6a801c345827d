package iface

import (
	"cmp"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/keyplane/keyplane/descriptors/vpp/conn"
	"github.com/keyplane/keyplane/descriptors/vpp/iface/internal/kinds"
	"github.com/keyplane/keyplane/descriptors/vpp/internal/simulated"
	"github.com/keyplane/keyplane/internal/testkit"
	"github.com/keyplane/keyplane/internal/vppsim"
	"github.com/keyplane/keyplane/proto/ligato/vpp/interfaces"
	"github.com/keyplane/keyplane/scheduler"
)

// TestPluginsThatAreNotLoaded: what needs one is UNIMPLEMENTED and names the message, and what
// stands can be read all the same.
func TestPluginsThatAreNotLoaded(t *testing.T) {
	vpp := simulated.StartWith(t, vppsim.Options{Release: "25.10", Without: []string{
		"af_packet", "gtpu", "memif", "rdma", "vmxnet3", "vxlan", "vxlan_gpe", "wireguard",
	}})
	c := vpp.Dial()
	host := func(string) (string, bool, bool) { return "lo", false, true }
	h := newHandler(Options{API: c, LinuxHost: host, RaiseLink: func(string) error { return nil }, HasLink: func(string) bool { return false }}, links{})
	vpp.Loopback(c, "loop1")
	for kind, message := range map[kinds.Form]string{
		{Type: interfaces.Interface_AF_PACKET}:               "af_packet_create_v3",
		{Type: interfaces.Interface_GTPU_TUNNEL}:             "gtpu_add_del_tunnel",
		{Type: interfaces.Interface_RDMA}:                    "rdma_create_v4",
		{Type: interfaces.Interface_VMXNET3_INTERFACE}:       "vmxnet3_create",
		{Type: interfaces.Interface_VXLAN_TUNNEL}:            "vxlan_add_del_tunnel_v3",
		{Type: interfaces.Interface_VXLAN_TUNNEL, GPE: true}: "vxlan_gpe_add_del_tunnel_v2",
		{Type: interfaces.Interface_WIREGUARD_TUNNEL}:        "wireguard_interface_create",
	} {
		l := lives()[kind]
		v := testkit.Parse[*interfaces.Interface](t, fmt.Sprintf("name: %q type: %s %s", cmp.Or(l.name, "if1"), kind.Type, l.value))
		_, err := h.create(t.Context(), "", v)
		var missing *conn.Missing
		if !errors.As(err, &missing) || !errors.Is(err, scheduler.ErrUnimplemented) || !strings.HasPrefix(missing.Message, message+"_") {
			t.Errorf("%s: %v; want that %s is missing", kind, err, message)
		}
	}
	all, err := h.dump(t.Context(), nil, nil, true)
	if err != nil || len(all) != 2 || all[1].Value.GetName() != "loop1" {
		t.Errorf("read back is %v, %v", all, err)
	}
}

// TestEveryTypeHasAKind: no type of the model is left out.
func TestEveryTypeHasAKind(t *testing.T) {
	for n, name := range interfaces.Interface_Type_name {
		of := interfaces.Interface_Type(n)
		if _, has := kinds.All()[kinds.Form{Type: of}]; !has && of != interfaces.Interface_UNDEFINED_TYPE {
			t.Errorf("%s has none", name)
		}
	}
}
