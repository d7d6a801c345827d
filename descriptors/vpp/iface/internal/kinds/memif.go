package kinds

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"go.fd.io/govpp/api"
	"go.fd.io/govpp/binapi/memif"

	"github.com/keyplane/keyplane/descriptors/vpp/conn"
	"github.com/keyplane/keyplane/descriptors/vpp/internal/ifindex"
	"github.com/keyplane/keyplane/proto/ligato/vpp/interfaces"
)

// VPP's defaults of a memif (VPP memif.api).
const (
	memifRing   = 1024
	memifBuffer = 2048
)

// longestSocket is the longest file name of a socket (VPP memif.api, string
// socket_filename[108]).
const longestSocket = 107

// longestSecret is the longest secret of a memif (VPP memif.api, string secret[24]).
const longestSecret = 23

// memifKind is the kind of MEMIF. VPP has no message to change a memif, so each change of
// the link needs a new one.
func memifKind() Kind {
	return Kind{
		Link:     "memif",
		Validate: validateMemif,
		SameLink: func(old, new *interfaces.Interface) bool { return memifOf(old) == memifOf(new) },
		Create:   createMemif,
		Delete: func(ctx context.Context, e *Env, _ *interfaces.Interface, meta ifindex.Meta) error {
			return e.API.Call(ctx, &memif.MemifDelete{SwIfIndex: meta.SwIfIndex()}, &memif.MemifDeleteReply{})
		},
		Retrieve: retrieveMemifs,
	}
}

// validateMemif checks texts by the room in VPP's message. The error never has the secret.
func validateMemif(f *Findings, v *interfaces.Interface) {
	m := v.GetMemif()
	if interfaces.MemifLink_MemifMode_name[int32(m.GetMode())] == "" {
		f.Add("memif.mode", int32(m.GetMode()), "ETHERNET, IP or PUNT_INJECT")
	}
	if file := m.GetSocketFilename(); len(file) > longestSocket || strings.ContainsRune(file, 0) {
		f.Add("memif.socket_filename", file, "at most %d bytes (it has %d), none of them zero", longestSocket, len(file))
	}
	if len(m.GetSecret()) > longestSecret || strings.ContainsRune(m.GetSecret(), 0) {
		f.Add("memif.secret", "(secret)", "at most %d bytes, none of them zero", longestSecret)
	}
}

// memifLink is a link with all defaults filled in.
type memifLink struct {
	mode                 interfaces.MemifLink_MemifMode
	master               bool
	id                   uint32
	socket, secret       string
	ring, buffer, rx, tx uint32
}

// memifOf fills in VPP's defaults, so a default that is written out is no difference.
func memifOf(v *interfaces.Interface) memifLink {
	m := v.GetMemif()
	return memifLink{
		m.GetMode(), m.GetMaster(), m.GetId(), socketOf(m), m.GetSecret(),
		cmp.Or(m.GetRingSize(), memifRing), cmp.Or(m.GetBufferSize(), memifBuffer), max(m.GetRxQueues(), 1), max(m.GetTxQueues(), 1),
	}
}

// defaultSocket is the relative name of VPP's default socket, which has number 0 (VPP memif
// private.h, MEMIF_DEFAULT_SOCKET_FILENAME).
const defaultSocket = "memif.sock"

// socketOf returns the name of the socket in one spelling; empty: VPP's default socket. Only VPP
// knows the folder of relative names, so the absolute name of such a socket is another text; see
// socketFiles.
func socketOf(m *interfaces.MemifLink) string {
	name := m.GetSocketFilename()
	if name == "" || name == "default" {
		return ""
	}
	if name = filepath.Clean(name); name == defaultSocket {
		return ""
	}
	return name
}

// socketFiles are the files of VPP's sockets by number.
type socketFiles map[uint32]string

// is tells whether a socket is the one that a link names. VPP looks for a relative name in its
// runtime folder, where the default socket is. It takes a name such as "abstract:x" as it is.
func (s socketFiles) is(id uint32, m *interfaces.MemifLink) bool {
	name := socketOf(m)
	switch file := s[id]; {
	case name == "":
		return id == 0
	case filepath.IsAbs(name):
		return filepath.Clean(file) == name
	default:
		return file == m.GetSocketFilename() || filepath.Clean(file) == filepath.Join(filepath.Dir(s[0]), name)
	}
}

// createMemif creates the memif with the newest message that this VPP has. Version 2
// differs in its flag for zero-copy, which the model does not have.
func createMemif(ctx context.Context, e *Env, v *interfaces.Interface) (uint32, error) {
	m := memifOf(v)
	socket, err := e.memifSocket(ctx, v.GetMemif())
	if err != nil {
		return 0, err
	}
	// Zero sizes would be VPP's defaults as well; they are written out for equal
	// comparisons.
	q := &memif.MemifCreateV2{
		Mode: memif.MemifMode(m.mode), RxQueues: uint8(m.rx), TxQueues: uint8(m.tx), ID: m.id, SocketID: socket,
		RingSize: m.ring, BufferSize: uint16(m.buffer), Secret: m.secret, Role: memif.MEMIF_ROLE_API_SLAVE,
	}
	if m.master {
		q.Role = memif.MEMIF_ROLE_API_MASTER
	}
	if mac, ok := ParseMAC(v.GetPhysAddress()); ok {
		q.HwAddr = mac
	}
	request, err := e.API.First(q, &memif.MemifCreate{
		Role: q.Role, Mode: q.Mode, RxQueues: q.RxQueues, TxQueues: q.TxQueues, ID: q.ID, SocketID: q.SocketID,
		RingSize: q.RingSize, BufferSize: q.BufferSize, HwAddr: q.HwAddr, Secret: q.Secret,
	})
	if err != nil {
		return 0, err
	}
	if _, newer := request.(*memif.MemifCreateV2); newer {
		reply := &memif.MemifCreateV2Reply{}
		err = e.API.Call(ctx, request, reply)
		return uint32(reply.SwIfIndex), err
	}
	reply := &memif.MemifCreateReply{}
	err = e.API.Call(ctx, request, reply)
	return uint32(reply.SwIfIndex), err
}

// memifSocket returns the number of the socket that a link names. A new file gets the lowest free
// number. The lock makes choosing and registering one step.
func (e *Env) memifSocket(ctx context.Context, m *interfaces.MemifLink) (uint32, error) {
	if socketOf(m) == "" {
		return 0, nil
	}
	e.sockets.Lock()
	defer e.sockets.Unlock()
	// VPP's table, not a record of ours: other clients register sockets, too.
	known, err := e.memifSockets(ctx)
	if err != nil {
		return 0, err
	}
	for _, id := range slices.Sorted(maps.Keys(known)) {
		if known.is(id, m) {
			return id, nil
		}
	}
	file := m.GetSocketFilename()
	for id := uint32(1); ; id++ {
		if known[id] != "" {
			continue
		}
		err := e.API.Call(ctx, &memif.MemifSocketFilenameAddDel{IsAdd: true, SocketID: id, SocketFilename: file}, &memif.MemifSocketFilenameAddDelReply{})
		if errors.Is(err, api.ENTRY_ALREADY_EXISTS) {
			continue // another client took the number meanwhile
		}
		if err != nil {
			return 0, fmt.Errorf("memif socket %s: %w", file, err)
		}
		return id, nil
	}
}

// memifSockets reads the files of VPP's sockets.
func (e *Env) memifSockets(ctx context.Context) (socketFiles, error) {
	details, err := conn.Dump[memif.MemifSocketFilenameDetails](ctx, e.API, &memif.MemifSocketFilenameDump{})
	out := make(socketFiles, len(details))
	for _, d := range details {
		out[d.SocketID] = d.SocketFilename
	}
	return out, err
}

// retrieveMemifs takes the secret, sizes and queues from the desired value. VPP does not
// list the secret, and lists the others only when there is a peer.
func retrieveMemifs(ctx context.Context, e *Env, all map[uint32]*Found) error {
	if !slices.ContainsFunc(Sorted(all), func(f *Found) bool { return f.Details.InterfaceDevType == "memif" }) {
		return nil
	}
	files, err := e.memifSockets(ctx)
	if err != nil {
		return err
	}
	details, err := conn.Dump[memif.MemifDetails](ctx, e.API, &memif.MemifDump{})
	if err != nil {
		return err
	}
	for _, d := range details {
		f := all[uint32(d.SwIfIndex)]
		if f == nil {
			continue
		}
		w := f.Desired.GetMemif()
		link := &interfaces.MemifLink{
			Mode: interfaces.MemifLink_MemifMode(d.Mode), Master: d.Role == memif.MEMIF_ROLE_API_MASTER, Id: d.ID,
			Secret: w.GetSecret(), RingSize: w.GetRingSize(), BufferSize: w.GetBufferSize(), RxQueues: w.GetRxQueues(), TxQueues: w.GetTxQueues(),
		}
		// VPP has several names for a socket, and the declared one is no difference.
		if files.is(d.SocketID, w) {
			link.SocketFilename = w.GetSocketFilename()
		} else if d.SocketID != 0 {
			link.SocketFilename = files[d.SocketID]
		}
		f.Value.Type, f.Value.Link = interfaces.Interface_MEMIF, &interfaces.Interface_Memif{Memif: link}
	}
	return nil
}
