package vppsim

import (
	"cmp"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"go.fd.io/govpp/api"
	"go.fd.io/govpp/binapi/ethernet_types"
	"go.fd.io/govpp/binapi/interface_types"
	"go.fd.io/govpp/binapi/memif"
)

// runtimeDir is where VPP puts sockets that are given by a relative name.
const runtimeDir = "/run/vpp"

// memifSockets are the files of memif sockets, by ID.
type memifSockets map[uint32]string

func newMemifSockets() memifSockets { return memifSockets{0: runtimeDir + "/memif.sock"} }

// A memifDevice is one end of a shared memory interface.
type memifDevice struct{ q memif.MemifCreateV2 }

func (memifDevice) gone(*world, *iface) {}

func memifMessages() []entry {
	return []entry{
		call(func(w *world, q *memif.MemifSocketFilenameAddDel, _ *memif.MemifSocketFilenameAddDelReply) errno {
			if q.IsAdd && q.SocketID == none {
				return api.INVALID_ARGUMENT
			}
			_, errno := w.changeMemifSocket(memif.MemifSocketFilenameAddDelV2(*q))
			return errno
		}),
		call(func(w *world, q *memif.MemifSocketFilenameAddDelV2, r *memif.MemifSocketFilenameAddDelV2Reply) (e errno) {
			r.SocketID, e = w.changeMemifSocket(*q)
			return e
		}),
		dump(func(w *world, _ *memif.MemifSocketFilenameDump, yield func(memif.MemifSocketFilenameDetails)) {
			for _, id := range slices.Sorted(maps.Keys(w.memifSockets)) {
				yield(memif.MemifSocketFilenameDetails{SocketID: id, SocketFilename: w.memifSockets[id]})
			}
		}),
		call(func(w *world, q *memif.MemifCreate, r *memif.MemifCreateReply) (e errno) {
			r.SwIfIndex, e = w.createMemif(memif.MemifCreateV2{
				Role: q.Role, Mode: q.Mode, RxQueues: q.RxQueues, TxQueues: q.TxQueues, ID: q.ID, SocketID: q.SocketID,
				RingSize: q.RingSize, BufferSize: q.BufferSize, NoZeroCopy: q.NoZeroCopy, HwAddr: q.HwAddr, Secret: q.Secret,
			})
			return e
		}),
		call(func(w *world, q *memif.MemifCreateV2, r *memif.MemifCreateV2Reply) (e errno) {
			r.SwIfIndex, e = w.createMemif(*q)
			return e
		}),
		on(func(q *memif.MemifDelete) interface_types.InterfaceIndex { return q.SwIfIndex },
			func(w *world, i *iface, _ *memif.MemifDelete, _ *memif.MemifDeleteReply) errno {
				if _, is := i.device.(memifDevice); !is {
					return api.INVALID_SW_IF_INDEX
				}
				w.remove(i)
				return ok
			}),
		dump(func(w *world, _ *memif.MemifDump, yield func(memif.MemifDetails)) {
			for _, i := range w.interfaces.sorted() {
				m, is := i.device.(memifDevice)
				if !is {
					continue
				}
				yield(memif.MemifDetails{ // of one without a peer
					SwIfIndex: interface_types.InterfaceIndex(i.index), HwAddr: i.mac, ID: m.q.ID, Role: m.q.Role, Mode: m.q.Mode,
					ZeroCopy: m.q.Role == memif.MEMIF_ROLE_API_SLAVE && !m.q.NoZeroCopy, SocketID: m.q.SocketID,
					RingSize: 1, Flags: i.flags, IfName: i.name,
				})
			}
		}),
	}
}

func (w *world) changeMemifSocket(q memif.MemifSocketFilenameAddDelV2) (uint32, errno) {
	file, has := w.memifSockets[q.SocketID]
	switch {
	case q.SocketID == 0, q.IsAdd && q.SocketFilename == "", !q.IsAdd && !has:
		return q.SocketID, api.INVALID_ARGUMENT
	case !q.IsAdd:
		if len(w.memifsOn(q.SocketID)) > 0 {
			return q.SocketID, api.UNEXPECTED_INTF_STATE
		}
		delete(w.memifSockets, q.SocketID)
		return q.SocketID, ok
	}
	if q.SocketID == none {
		q.SocketID = 1013904223 + uint32(len(w.memifSockets)) - 1
	}
	if !filepath.IsAbs(q.SocketFilename) {
		q.SocketFilename = filepath.Join(runtimeDir, q.SocketFilename)
	}
	if has && file != q.SocketFilename {
		return q.SocketID, api.ENTRY_ALREADY_EXISTS
	}
	if has {
		return q.SocketID, ok
	}
	w.memifSockets[q.SocketID] = q.SocketFilename
	return q.SocketID, ok
}

func (w *world) memifsOn(socket uint32) (out []memif.MemifCreateV2) {
	for _, i := range w.interfaces.byIndex {
		if m, is := i.device.(memifDevice); is && m.q.SocketID == socket {
			out = append(out, m.q)
		}
	}
	return out
}

// createMemif: all interfaces of a socket have one role.
func (w *world) createMemif(q memif.MemifCreateV2) (interface_types.InterfaceIndex, errno) {
	refused := interface_types.InterfaceIndex(none)
	if q.Mode > memif.MEMIF_MODE_API_PUNT_INJECT {
		return refused, crash
	}
	if w.memifSockets[q.SocketID] == "" || q.RingSize&(q.RingSize-1) != 0 {
		return refused, api.INVALID_ARGUMENT
	}
	if q.Role != memif.MEMIF_ROLE_API_MASTER {
		q.Role = memif.MEMIF_ROLE_API_SLAVE // whatever it is
	}
	others := w.memifsOn(q.SocketID)
	for _, other := range others {
		if other.ID == q.ID || other.Role != q.Role {
			return refused, api.SUBIF_ALREADY_EXISTS
		}
	}
	if q.Role == memif.MEMIF_ROLE_API_MASTER && len(others) == 0 && !canListen(w.memifSockets[q.SocketID]) {
		return interface_types.InterfaceIndex(w.interfaces.next), api.SYSCALL_ERROR_4
	}
	q.RingSize, q.BufferSize = cmp.Or(q.RingSize, 1024), cmp.Or(q.BufferSize, 2048)
	i := &iface{
		name: fmt.Sprintf("memif%d/%d", q.SocketID, q.ID), devType: "memif", device: memifDevice{q}, mac: q.HwAddr,
		noLink: true, linkMTU: 9000, mtu: [4]uint32{9000},
	}
	w.create(i)
	if i.mac == (ethernet_types.MacAddress{}) {
		i.mac = randomMAC(i.index)
	}
	return interface_types.InterfaceIndex(i.index), ok
}

// canListen tells whether the folder of a socket is there; VPP makes its own.
func canListen(file string) bool {
	_, err := os.Stat(filepath.Dir(file))
	return err == nil || filepath.Dir(file) == runtimeDir
}
