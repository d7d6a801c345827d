// Package memif simulates VPP's shared memory interfaces and the files of their sockets.
// No peer ever connects, so the link stays down and dumps show the values of an interface
// without peer.
//
// VPP refers to a socket by its number only. A number that means another file after a restart
// of VPP is a mistake that a descriptor must notice, so the simulation shows both.
package memif

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"

	"go.fd.io/govpp/api"
	"go.fd.io/govpp/binapi/ethernet_types"
	"go.fd.io/govpp/binapi/interface_types"
	"go.fd.io/govpp/binapi/memif"

	"github.com/keyplane/keyplane/internal/vppsim/core"
)

// A device is one end of a shared memory interface: the request that created it.
type device struct{ request memif.MemifCreateV2 }

// A plugin has the sockets of one VPP. The interfaces have their requests as devices.
type plugin struct {
	vpp     *core.VPP
	sockets map[uint32]string // file by ID
}

type index = interface_types.InterfaceIndex

// New adds the plugin. Socket 0 exists from the start and cannot be changed. Deleting any
// other interface is refused with INVALID_SW_IF_INDEX.
func New(vpp *core.VPP) {
	p := &plugin{vpp, map[uint32]string{0: runtimeDir + "/memif.sock"}}
	p.socketMessages()
	vpp.Register(core.Plugin{Messages: []core.Message{
		core.Call(func(q *memif.MemifCreate, r *memif.MemifCreateReply) (e core.Errno) {
			r.SwIfIndex, e = p.create(memif.MemifCreateV2{
				Role: q.Role, Mode: q.Mode, RxQueues: q.RxQueues, TxQueues: q.TxQueues, ID: q.ID, SocketID: q.SocketID,
				RingSize: q.RingSize, BufferSize: q.BufferSize, NoZeroCopy: q.NoZeroCopy, HwAddr: q.HwAddr, Secret: q.Secret,
			})
			return e
		}),
		core.Call(func(q *memif.MemifCreateV2, r *memif.MemifCreateV2Reply) (e core.Errno) {
			r.SwIfIndex, e = p.create(*q)
			return e
		}),
		core.Call(func(q *memif.MemifDelete, _ *memif.MemifDeleteReply) core.Errno {
			return core.Delete[device](vpp, q.SwIfIndex, api.INVALID_SW_IF_INDEX)
		}),
		core.Dump(p.dump),
	}})
}

// create makes an interface that is down. All interfaces of a socket have one role, and
// their IDs differ. A ring size is a power of two. Any role but master means slave. VPP
// crashes on an unknown mode. In mode IP there is no MAC address. A master on a socket in a
// missing folder is refused, and the reply has an index nevertheless; a slave is accepted there.
func (p *plugin) create(q memif.MemifCreateV2) (index, core.Errno) {
	refused := index(core.None)
	if q.Mode > memif.MEMIF_MODE_API_PUNT_INJECT {
		return refused, core.Crash
	}
	if p.sockets[q.SocketID] == "" || q.RingSize&(q.RingSize-1) != 0 {
		return refused, api.INVALID_ARGUMENT
	}
	if q.Role != memif.MEMIF_ROLE_API_MASTER {
		q.Role = memif.MEMIF_ROLE_API_SLAVE
	}
	others := p.on(q.SocketID)
	for _, other := range others {
		if other.ID == q.ID || other.Role != q.Role {
			return refused, api.SUBIF_ALREADY_EXISTS
		}
	}
	if q.Role == memif.MEMIF_ROLE_API_MASTER && len(others) == 0 && !canListen(p.sockets[q.SocketID]) {
		return index(p.vpp.NextIndex()), api.SYSCALL_ERROR_4
	}
	q.RingSize, q.BufferSize = cmp.Or(q.RingSize, 1024), cmp.Or(q.BufferSize, 2048)
	i := &core.Interface{
		Name: fmt.Sprintf("memif%d/%d", q.SocketID, q.ID), DevType: "memif", Device: device{q}, MAC: q.HwAddr,
		NoMAC: q.Mode == memif.MEMIF_MODE_API_IP, NoLink: true, LinkMTU: 9000, MTU: [4]uint32{9000},
	}
	p.vpp.Create(i)
	switch {
	case i.NoMAC:
		i.MAC = ethernet_types.MacAddress{}
	case i.MAC == ethernet_types.MacAddress{}:
		i.MAC = core.RandomMAC(i.Index)
	}
	return index(i.Index), core.OK
}

// on returns the interfaces of a socket.
func (p *plugin) on(socket uint32) (out []memif.MemifCreateV2) {
	for _, d := range core.Each[device](p.vpp, index(core.None)) {
		if d.request.SocketID == socket {
			out = append(out, d.request)
		}
	}
	return out
}

// canListen returns whether the folder of a socket exists. VPP makes its own runtime folder.
func canListen(file string) bool {
	_, err := os.Stat(filepath.Dir(file))
	return err == nil || filepath.Dir(file) == runtimeDir
}

// dump lists all interfaces. Without a peer the ring size is 1 and the buffer size 0.
func (p *plugin) dump(_ *memif.MemifDump, yield func(memif.MemifDetails)) {
	for i, d := range core.Each[device](p.vpp, index(core.None)) {
		q := d.request
		yield(memif.MemifDetails{
			SwIfIndex: index(i.Index), HwAddr: i.MAC, ID: q.ID, Role: q.Role, Mode: q.Mode,
			ZeroCopy: q.Role == memif.MEMIF_ROLE_API_SLAVE && !q.NoZeroCopy, SocketID: q.SocketID,
			RingSize: 1, Flags: i.Flags, IfName: i.Name,
		})
	}
}
