package memif

import (
	"maps"
	"slices"
	"strings"

	"go.fd.io/govpp/api"
	"go.fd.io/govpp/binapi/memif"

	"github.com/keyplane/keyplane/internal/vppsim/core"
)

const (
	// runtimeDir is the folder of sockets with a relative name.
	runtimeDir = "/run/vpp"
	// firstChosenID is the first ID that VPP chooses. It looks random and is the same
	// after each start.
	firstChosenID = 1013904223
)

// socketMessages registers the messages of sockets.
func (p *plugin) socketMessages() {
	p.vpp.Register(core.Plugin{Messages: []core.Message{
		core.Call(func(q *memif.MemifSocketFilenameAddDel, _ *memif.MemifSocketFilenameAddDelReply) core.Errno {
			if q.IsAdd && q.SocketID == core.None { // only the second version chooses an ID
				return api.INVALID_ARGUMENT
			}
			_, errno := p.changeSocket(memif.MemifSocketFilenameAddDelV2(*q))
			return errno
		}),
		core.Call(func(q *memif.MemifSocketFilenameAddDelV2, r *memif.MemifSocketFilenameAddDelV2Reply) (e core.Errno) {
			r.SocketID, e = p.changeSocket(*q)
			return e
		}),
		core.Dump(func(_ *memif.MemifSocketFilenameDump, yield func(memif.MemifSocketFilenameDetails)) {
			for _, id := range slices.Sorted(maps.Keys(p.sockets)) {
				yield(memif.MemifSocketFilenameDetails{SocketID: id, SocketFilename: p.sockets[id]})
			}
		}),
	}})
}

// changeSocket adds or deletes the file of a socket. An existing ID keeps its file: the
// same file again is no error. Two IDs may have one file. A socket with interfaces cannot
// be deleted.
func (p *plugin) changeSocket(q memif.MemifSocketFilenameAddDelV2) (uint32, core.Errno) {
	file, has := p.sockets[q.SocketID]
	switch {
	case q.SocketID == 0, q.IsAdd && q.SocketFilename == "", !q.IsAdd && !has:
		return q.SocketID, api.INVALID_ARGUMENT
	case !q.IsAdd && len(p.on(q.SocketID)) > 0:
		return q.SocketID, api.UNEXPECTED_INTF_STATE
	case !q.IsAdd:
		delete(p.sockets, q.SocketID)
		return q.SocketID, core.OK
	}
	if q.SocketID == core.None {
		q.SocketID = firstChosenID + uint32(len(p.sockets)) - 1
	}
	q.SocketFilename = fileOf(q.SocketFilename)
	if has && file != q.SocketFilename {
		return q.SocketID, api.ENTRY_ALREADY_EXISTS
	}
	p.sockets[q.SocketID] = q.SocketFilename
	return q.SocketID, core.OK
}

// fileOf returns the name of a socket as VPP lists it: a relative name gets the runtime folder
// in front, and stays as it is otherwise (VPP memif.c, memif_socket_filename_add_del).
func fileOf(name string) string {
	for _, begin := range []string{"/", "unix:", "tcp:", "abstract:"} {
		if strings.HasPrefix(name, begin) {
			return name
		}
	}
	return runtimeDir + "/" + name
}
