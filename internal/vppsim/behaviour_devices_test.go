package vppsim_test

import (
	"bytes"

	"go.fd.io/govpp/api"
	"go.fd.io/govpp/binapi/af_packet"
	"go.fd.io/govpp/binapi/bond"
	vppif "go.fd.io/govpp/binapi/interface"
	"go.fd.io/govpp/binapi/interface_types"
	"go.fd.io/govpp/binapi/ipsec"
	"go.fd.io/govpp/binapi/rdma"
	"go.fd.io/govpp/binapi/tunnel_types"
	"go.fd.io/govpp/binapi/vmxnet3"
	"go.fd.io/govpp/binapi/wireguard"
)

// deviceRows are of VPP's source: interface_api.c, interface_cli.c, ipsec_itf.c, wireguard_if.c, rdma/api.c, rdma/device.c,
// vmxnet3.c and vmxnet3_api.c.
func deviceRows() []row {
	return []row{
		{"IPsec interfaces", func(v *vpp) {
			create := func(instance uint32, want api.VPPApiError) index {
				v.Helper()
				var r ipsec.IpsecItfCreateReply
				v.call("ipsec_itf_create", want, &ipsec.IpsecItfCreate{Itf: ipsec.IpsecItf{UserInstance: instance, Mode: tunnel_types.TUNNEL_API_MODE_MP}}, &r)
				return r.SwIfIndex
			}
			i := create(3, 0)
			if d := v.details(i); d == nil || d.InterfaceName != "ipsec3" || d.InterfaceDevType != "IPSEC Tunnel" || d.Flags != 0 {
				v.Errorf("it is %+v", d)
			}
			if all := dump[ipsec.IpsecItfDetails](v, &ipsec.IpsecItfDump{SwIfIndex: i}); len(all) != 1 || all[0].Itf.Mode != tunnel_types.TUNNEL_API_MODE_MP {
				v.Errorf("it is dumped as %+v", all)
			}
			create(3, api.INVALID_REGISTRATION)
			create(16384, api.INVALID_REGISTRATION)
			remove := func(i index, want api.VPPApiError) {
				v.Helper()
				v.call("ipsec_itf_delete", want, &ipsec.IpsecItfDelete{SwIfIndex: i}, &ipsec.IpsecItfDeleteReply{})
			}
			remove(v.loop(), api.INVALID_SW_IF_INDEX)
			remove(unknown, api.INVALID_SW_IF_INDEX)
			v.flags(i, 1, 0)
			if d := v.details(i); d.Flags != 3 {
				v.Errorf("up it has flags %d", d.Flags)
			}
			remove(i, 0)
			remove(i, api.INVALID_SW_IF_INDEX)
		}},
		{"WireGuard interfaces", func(v *vpp) {
			private := bytes.Repeat([]byte{7}, 32)
			create := func(instance uint32, want api.VPPApiError) index {
				v.Helper()
				var r wireguard.WireguardInterfaceCreateReply
				v.call("wireguard_interface_create", want, &wireguard.WireguardInterfaceCreate{Interface: wireguard.WireguardInterface{
					UserInstance: instance, PrivateKey: private, PublicKey: make([]byte, 32), Port: 51820, SrcIP: ipOf("10.0.0.1"),
				}}, &r)
				return r.SwIfIndex
			}
			i := create(3, 0)
			if d := v.details(i); d == nil || d.InterfaceName != "wg3" || d.InterfaceDevType != "Wireguard Tunnel" || d.Flags != 0 {
				v.Errorf("it is %+v", d)
			}
			create(3, api.INVALID_REGISTRATION)
			again := create(^uint32(0), 0) // at the same port
			for show, want := range map[bool][]byte{true: private, false: make([]byte, 32)} {
				all := dump[wireguard.WireguardInterfaceDetails](v, &wireguard.WireguardInterfaceDump{ShowPrivateKey: show, SwIfIndex: i})
				if len(all) != 1 || !bytes.Equal(all[0].Interface.PrivateKey, want) || all[0].Interface.Port != 51820 {
					v.Errorf("shown %t: it is dumped as %+v", show, all)
				}
			}
			remove := func(i index, want api.VPPApiError) {
				v.Helper()
				v.call("wireguard_interface_delete", want, &wireguard.WireguardInterfaceDelete{SwIfIndex: i}, &wireguard.WireguardInterfaceDeleteReply{})
			}
			remove(v.loop(), api.INVALID_VALUE)
			remove(unknown, api.INVALID_SW_IF_INDEX)
			remove(again, 0)
			remove(i, 0)
			remove(i, api.INVALID_SW_IF_INDEX)
		}},
		{"modes and threads of queues", queuesOfInterfaces},
		{"a link that is up stays so until its interface was up", func(v *vpp) {
			var b bond.BondCreate2Reply
			v.call("bond_create2", 0, &bond.BondCreate2{Mode: bond.BOND_API_MODE_ROUND_ROBIN, ID: 3}, &b)
			defer v.call("bond_delete", 0, &bond.BondDelete{SwIfIndex: b.SwIfIndex}, &bond.BondDeleteReply{})
			type step struct{ set, has interface_types.IfStatusFlags }
			steps := []step{{0, 2}, {1, 3}, {0, 0}, {1, 3}}
			if v.since("26.06") { // no member is active
				steps = []step{{0, 0}, {1, 1}, {0, 0}, {1, 1}}
			}
			for _, step := range steps {
				v.flags(b.SwIfIndex, step.set, 0)
				if d := v.details(b.SwIfIndex); d.Flags != step.has {
					v.Errorf("set to %d it has %s", step.set, d.Flags)
				}
			}
		}},
		{"RDMA interfaces that cannot be", func(v *vpp) {
			create := func(host string, ring uint16, want api.VPPApiError) {
				v.Helper()
				v.call("rdma_create_v3", want, &rdma.RdmaCreateV3{HostIf: host, RxqNum: 1, RxqSize: ring, TxqSize: 1024}, &rdma.RdmaCreateV3Reply{})
			}
			create("lo", 128, api.INVALID_VALUE)
			create("lo", 1000, api.INVALID_VALUE)
			v.call("not one", api.INVALID_INTERFACE, &rdma.RdmaDelete{SwIfIndex: v.loop()}, &rdma.RdmaDeleteReply{})
		}},
		{"VMXNET3 interfaces that cannot be", func(v *vpp) {
			for _, ring := range []uint16{63, 100, 4160} {
				v.call("vmxnet3_create", api.INVALID_VALUE, &vmxnet3.Vmxnet3Create{PciAddr: 0xffff, RxqSize: ring}, &vmxnet3.Vmxnet3CreateReply{})
			}
			v.call("not one", api.INVALID_SW_IF_INDEX, &vmxnet3.Vmxnet3Delete{SwIfIndex: v.loop()}, &vmxnet3.Vmxnet3DeleteReply{})
		}},
	}
}

// queuesOfInterfaces was measured with 25.10 that has no workers.
func queuesOfInterfaces(v *vpp) {
	v.own()
	mode := func(i index, to interface_types.RxMode, ofQueue3 bool, want api.VPPApiError) {
		v.Helper()
		v.call("rx_mode", want, &vppif.SwInterfaceSetRxMode{SwIfIndex: i, QueueIDValid: ofQueue3, QueueID: 3, Mode: to}, &vppif.SwInterfaceSetRxModeReply{})
	}
	place := func(i index, queue, worker uint32, isMain bool, want api.VPPApiError) {
		v.Helper()
		v.call("rx_placement", want, &vppif.SwInterfaceSetRxPlacement{SwIfIndex: i, QueueID: queue, WorkerID: worker, IsMain: isMain}, &vppif.SwInterfaceSetRxPlacementReply{})
	}
	loop := v.loop()
	var sub vppif.CreateVlanSubifReply
	v.call("create_vlan_subif", 0, &vppif.CreateVlanSubif{SwIfIndex: loop, VlanID: 7}, &sub)
	mode(loop, interface_types.RX_MODE_API_POLLING, false, 0)
	mode(loop, interface_types.RX_MODE_API_POLLING, true, api.UNIMPLEMENTED)
	mode(sub.SwIfIndex, interface_types.RX_MODE_API_POLLING, false, api.INVALID_VALUE)
	mode(unknown, interface_types.RX_MODE_API_POLLING, false, api.INVALID_SW_IF_INDEX)
	place(loop, 0, 0, true, api.UNIMPLEMENTED)
	place(sub.SwIfIndex, 0, 0, true, api.INVALID_VALUE)
	place(unknown, 0, 0, true, api.INVALID_SW_IF_INDEX)
	if all := dump[vppif.SwInterfaceRxPlacementDetails](v, &vppif.SwInterfaceRxPlacementDump{SwIfIndex: loop}); len(all) > 0 {
		v.Errorf("a loopback has queues: %+v", all)
	}

	var r af_packet.AfPacketCreateV3Reply
	v.call("af_packet_create_v3", 0, &af_packet.AfPacketCreateV3{
		Mode: af_packet.AF_PACKET_API_MODE_ETHERNET, HostIfName: "lo", UseRandomHwAddr: true, NumRxQueues: 1, NumTxQueues: 1,
	}, &r)
	defer v.call("af_packet_delete", 0, &af_packet.AfPacketDelete{HostIfName: "lo"}, &af_packet.AfPacketDeleteReply{})
	is := func(want interface_types.RxMode) {
		v.Helper()
		all := dump[vppif.SwInterfaceRxPlacementDetails](v, &vppif.SwInterfaceRxPlacementDump{SwIfIndex: r.SwIfIndex})
		if len(all) != 1 || all[0].QueueID != 0 || all[0].WorkerID != 0 || all[0].Mode != want {
			v.Errorf("it has %+v, want mode %s", all, want)
		}
	}
	is(interface_types.RX_MODE_API_INTERRUPT)
	for to, want := range map[interface_types.RxMode]interface_types.RxMode{
		interface_types.RX_MODE_API_DEFAULT: interface_types.RX_MODE_API_POLLING, interface_types.RX_MODE_API_INTERRUPT: interface_types.RX_MODE_API_INTERRUPT,
	} {
		mode(r.SwIfIndex, to, false, 0)
		is(want)
	}
	mode(r.SwIfIndex, interface_types.RX_MODE_API_ADAPTIVE, false, api.UNIMPLEMENTED)
	place(r.SwIfIndex, 3, 0, true, api.UNIMPLEMENTED)
	place(r.SwIfIndex, 0, 1, false, api.UNIMPLEMENTED)
	place(r.SwIfIndex, 0, 0, false, 0)
	mode(r.SwIfIndex, interface_types.RX_MODE_API_POLLING, false, 0)
	is(interface_types.RX_MODE_API_POLLING)
}
