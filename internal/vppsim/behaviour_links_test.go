package vppsim_test

import (
	"context"
	"errors"
	"path/filepath"
	"strings"

	"github.com/vishvananda/netlink"
	"go.fd.io/govpp/api"
	"go.fd.io/govpp/binapi/af_packet"
	"go.fd.io/govpp/binapi/ethernet_types"
	"go.fd.io/govpp/binapi/memif"
	"go.fd.io/govpp/binapi/tapv2"

	"github.com/keyplane/keyplane/internal/scratch"
	"github.com/keyplane/keyplane/internal/testkit"
)

// These rows have VPP reach for the host.
func linkRows() []row {
	return []row{
		{"sockets of memifs", memifSockets},
		{"memifs as they are created", memifAsCreated},
		{"a memif for IP packets has no MAC address", func(v *vpp) {
			mac := ethernet_types.MacAddress{2, 0, 0, 0, 0, 9}
			v.withoutMAC(v.memif(memif.MemifCreate{ID: 7, Role: memif.MEMIF_ROLE_API_SLAVE, Mode: memif.MEMIF_MODE_API_IP, HwAddr: mac}, 0))
		}},
		{"what a memif needs", func(v *vpp) {
			v.memifSocket(1, filepath.Join(v.TempDir(), "one.sock"), true, 0)
			v.memif(memif.MemifCreate{ID: 1, SocketID: 77}, api.INVALID_ARGUMENT)
			v.memif(memif.MemifCreate{ID: 1, RingSize: 1000}, api.INVALID_ARGUMENT)
			v.memif(memif.MemifCreate{ID: 1, SocketID: 1, RingSize: 32768, Role: 3}, 0)
			v.memif(memif.MemifCreate{ID: 1, SocketID: 1, Role: memif.MEMIF_ROLE_API_SLAVE}, api.SUBIF_ALREADY_EXISTS)
			v.memif(memif.MemifCreate{ID: 2, SocketID: 1, Role: memif.MEMIF_ROLE_API_MASTER}, api.SUBIF_ALREADY_EXISTS)
			v.memif(memif.MemifCreate{ID: 2, SocketID: 1, Role: memif.MEMIF_ROLE_API_SLAVE}, 0)
			for _, i := range []index{unknown, v.loop()} {
				v.call("memif_delete", api.INVALID_SW_IF_INDEX, &memif.MemifDelete{SwIfIndex: i}, &memif.MemifDeleteReply{})
			}
		}},
		{"a socket that nobody can make", func(v *vpp) {
			v.memifSocket(1, filepath.Join(v.TempDir(), "missing", "one.sock"), true, 0)
			v.memif(memif.MemifCreate{ID: 1, SocketID: 1, Role: memif.MEMIF_ROLE_API_MASTER}, api.SYSCALL_ERROR_4)
			i := v.memif(memif.MemifCreate{ID: 1, SocketID: 1, Role: memif.MEMIF_ROLE_API_SLAVE}, 0)
			if all := dump[memif.MemifDetails](v, &memif.MemifDump{}); len(all) != 1 || all[0].SwIfIndex != i {
				v.Errorf("there are %+v", all)
			}
		}},
		{"TAPs", taps},
		{"AF_PACKET interfaces", afPackets},
	}
}

// own skips the row unless it has a VPP and a network of its own.
func (v *vpp) own() {
	v.Helper()
	testkit.Need(v, "a VPP of its own (VPP=binary instead of VPP_SOCKET)", v.fresh)
	testkit.Need(v, "scratch namespaces (run as root, or allow user namespaces)", scratch.Inside())
}

// memif makes one, for the time of the row.
func (v *vpp) memif(q memif.MemifCreate, want api.VPPApiError) index {
	v.Helper()
	var r memif.MemifCreateReply
	v.call("memif_create", want, &q, &r)
	if want == 0 {
		v.Cleanup(func() {
			_ = v.Call(context.WithoutCancel(v.Context()), &memif.MemifDelete{SwIfIndex: r.SwIfIndex}, &memif.MemifDeleteReply{}) // the row may have deleted it
		})
	}
	return r.SwIfIndex
}

// memifSocket changes the socket with an ID, for the time of the row.
func (v *vpp) memifSocket(id uint32, file string, add bool, want api.VPPApiError) {
	v.Helper()
	q := &memif.MemifSocketFilenameAddDel{IsAdd: add, SocketID: id, SocketFilename: file}
	v.call("memif_socket_filename_add_del", want, q, &memif.MemifSocketFilenameAddDelReply{})
	v.Cleanup(func() {
		q := &memif.MemifSocketFilenameAddDel{SocketID: id}
		_ = v.Call(context.WithoutCancel(v.Context()), q, &memif.MemifSocketFilenameAddDelReply{}) // the row may have deleted it
	})
}

// memifFiles are the files of sockets by ID.
func (v *vpp) memifFiles() map[uint32]string {
	v.Helper()
	out := map[uint32]string{}
	for _, d := range dump[memif.MemifSocketFilenameDetails](v, &memif.MemifSocketFilenameDump{}) {
		out[d.SocketID] = d.SocketFilename
	}
	return out
}

func memifSockets(v *vpp) {
	runtime := filepath.Dir(v.memifFiles()[0])
	v.memifSocket(1, "/run/a.sock", true, 0)
	v.memifSocket(1, "/run/a.sock", true, 0)
	v.memifSocket(1, "/run/b.sock", true, api.ENTRY_ALREADY_EXISTS)
	v.memifSocket(2, "/run/a.sock", true, 0)
	v.memifSocket(3, "c.sock", true, 0)
	v.memifSocket(5, "./c.sock", true, 0)
	v.memifSocket(6, "abstract:c", true, 0)
	all := v.memifFiles()
	if all[5] != runtime+"/./c.sock" || all[6] != "abstract:c" {
		v.Errorf("they are %v", all)
	}
	if all[0] != runtime+"/memif.sock" || all[1] != "/run/a.sock" || all[2] != "/run/a.sock" || all[3] != runtime+"/c.sock" {
		v.Errorf("they are %v", all)
	}
	for _, add := range []bool{true, false} {
		v.memifSocket(0, "/run/a.sock", add, api.INVALID_ARGUMENT)
		v.memifSocket(none32, "/run/a.sock", add, api.INVALID_ARGUMENT)
	}
	v.memifSocket(4, "", true, api.INVALID_ARGUMENT)
	v.memifSocket(99, "", false, api.INVALID_ARGUMENT)
	i := v.memif(memif.MemifCreate{SocketID: 1}, 0)
	v.memifSocket(1, "", false, api.UNEXPECTED_INTF_STATE)
	v.call("memif_delete", 0, &memif.MemifDelete{SwIfIndex: i}, &memif.MemifDeleteReply{})
	v.memifSocket(1, "", false, 0)
	var chosen memif.MemifSocketFilenameAddDelV2Reply
	v.call("any", 0, &memif.MemifSocketFilenameAddDelV2{IsAdd: true, SocketID: none32, SocketFilename: "/run/d.sock"}, &chosen)
	if got := v.memifFiles()[chosen.SocketID]; got != "/run/d.sock" || chosen.SocketID == none32 {
		v.Errorf("socket %d is %q", chosen.SocketID, got)
	}
	v.memifSocket(chosen.SocketID, "", false, 0)
}

func memifAsCreated(v *vpp) {
	v.memifSocket(1, filepath.Join(v.TempDir(), "one.sock"), true, 0)
	mac := ethernet_types.MacAddress{2, 0, 0, 0, 0, 9}
	master := v.memif(memif.MemifCreate{ID: 7, SocketID: 1, Role: memif.MEMIF_ROLE_API_MASTER, Secret: "secret"}, 0)
	slave := v.memif(memif.MemifCreate{ID: 7, Role: memif.MEMIF_ROLE_API_SLAVE, HwAddr: mac}, 0)
	a, b := v.details(master), v.details(slave)
	if a.InterfaceName != "memif1/7" || a.InterfaceDevType != "memif" || a.LinkMtu != 9000 || a.Flags != 0 || !strings.HasPrefix(a.L2Address.String(), "02:fe:") {
		v.Errorf("the master is %+v", a)
	}
	if b.InterfaceName != "memif0/7" || b.L2Address != mac {
		v.Errorf("the slave is %+v", b)
	}
	for _, d := range dump[memif.MemifDetails](v, &memif.MemifDump{}) {
		if d.RingSize != 1 || d.BufferSize != 0 || d.ZeroCopy != (d.SwIfIndex == slave) || d.ID != 7 {
			v.Errorf("it is %+v", d)
		}
	}
	v.flags(master, 1, 0)
	if got := v.details(master).Flags; got != adminLink(1) {
		v.Errorf("without a peer its flags are %d", got)
	}
}

// tap makes one, for the time of the row; how it ends is of the reply.
func (v *vpp) tap(q tapv2.TapCreateV3) (index, error) {
	v.Helper()
	var r tapv2.TapCreateV3Reply
	q.UseRandomMac, q.NumRxQueues, q.NumTxQueues, q.HostIfNameSet = true, 1, 1, q.HostIfName != ""
	err := v.Call(v.Context(), &q, &r)
	if err == nil {
		v.Cleanup(func() {
			_ = v.Call(context.WithoutCancel(v.Context()), &tapv2.TapDeleteV2{SwIfIndex: r.SwIfIndex}, &tapv2.TapDeleteV2Reply{}) // the row may have deleted it
		})
	}
	return r.SwIfIndex, err
}

func taps(v *vpp) {
	v.own()
	first, err := v.tap(tapv2.TapCreateV3{ID: 0, HostIfName: "row-0"})
	testkit.Need(v, "/dev/vhost-net for TAPs of VPP", !errors.Is(err, api.SYSCALL_ERROR_1))
	v.is("tap_create_v3", err, 0)
	d, device := v.details(first), "virtio"
	if v.since("26.02") {
		device = "tap"
	}
	if d.InterfaceName != "tap0" || d.InterfaceDevType != device || d.Flags != adminLink(2) || d.LinkMtu != 9000 {
		v.Errorf("it is %+v", d)
	}
	_, err = v.tap(tapv2.TapCreateV3{ID: 0, HostIfName: "row-1"})
	v.is("the same ID", err, api.INVALID_INTERFACE)
	_, err = v.tap(tapv2.TapCreateV3{ID: 1, HostIfName: "row-1", RxRingSz: 1000})
	v.is("an odd ring", err, api.INIT_FAILED)
	tun, err := v.tap(tapv2.TapCreateV3{ID: 3, HostIfName: "row-3", TapFlags: tapv2.TAP_API_FLAG_TUN})
	v.is("a TUN", err, 0)
	v.withoutMAC(tun)
	v.call("tap_delete_v2", 0, &tapv2.TapDeleteV2{SwIfIndex: tun}, &tapv2.TapDeleteV2Reply{})
	second, err := v.tap(tapv2.TapCreateV3{ID: none32, HostIfName: "row-2"})
	v.is("any ID", err, 0)
	all := dump[tapv2.SwInterfaceTapV2Details](v, &tapv2.SwInterfaceTapV2Dump{SwIfIndex: none})
	if len(all) != 2 || all[0].RxRingSz != 256 || all[0].TxRingSz != 256 || all[0].HostIfName != "row-0" || all[1].DevName != "tap1" || all[1].HostIfName != "row-2" {
		v.Errorf("there are %+v", all)
	}
	remove := func(i index, want api.VPPApiError) {
		v.Helper()
		v.call("tap_delete_v2", want, &tapv2.TapDeleteV2{SwIfIndex: i}, &tapv2.TapDeleteV2Reply{})
	}
	remove(second, 0)
	for _, i := range []index{second, unknown, v.loop()} {
		remove(i, api.INVALID_SW_IF_INDEX)
	}
}

func afPackets(v *vpp) {
	v.own()
	link := &netlink.Veth{LinkAttrs: netlink.LinkAttrs{Name: "row-a"}, PeerName: "row-b"}
	if err := netlink.LinkAdd(link); err != nil {
		v.Fatal(err)
	}
	v.Cleanup(func() {
		if err := netlink.LinkDel(link); err != nil {
			v.Error(err)
		}
	})
	create := func(host string, want api.VPPApiError) index {
		v.Helper()
		var r af_packet.AfPacketCreateV3Reply
		v.call("af_packet_create_v3", want, &af_packet.AfPacketCreateV3{
			Mode: af_packet.AF_PACKET_API_MODE_ETHERNET, HostIfName: host, UseRandomHwAddr: true, NumRxQueues: 1, NumTxQueues: 1,
		}, &r)
		return r.SwIfIndex
	}
	remove := func(host string, want api.VPPApiError) {
		v.Helper()
		v.call("af_packet_delete", want, &af_packet.AfPacketDelete{HostIfName: host}, &af_packet.AfPacketDeleteReply{})
	}
	create("missing", api.INVALID_INTERFACE)
	create("", api.INVALID_INTERFACE)
	i := create("row-a", 0)
	if d := v.details(i); d.InterfaceName != "host-row-a" || d.InterfaceDevType != "af-packet" || d.Flags != adminLink(2) {
		v.Errorf("it is %+v", d)
	}
	if again := create("row-a", api.IF_ALREADY_EXISTS); again != i {
		v.Errorf("the reply has %d, want %d", again, i)
	}
	if all := dump[af_packet.AfPacketDetails](v, &af_packet.AfPacketDump{}); len(all) != 1 || all[0].HostIfName != "row-a" {
		v.Errorf("there are %+v", all)
	}
	remove("row-a", 0)
	remove("row-a", api.SYSCALL_ERROR_1)
	remove("missing", api.SYSCALL_ERROR_1)
}
