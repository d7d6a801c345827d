package simulated

import (
	"bufio"
	"encoding/binary"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"go.fd.io/govpp/binapi/memclnt"

	"github.com/keyplane/keyplane/internal/vppwire"
)

// A relay is a socket in front of a real VPP. It counts the messages to VPP and can cut the
// connection at a chosen message, as the simulated VPP does itself.
type relay struct {
	target string // VPP's socket

	mu     sync.Mutex     // guards the fields below
	counts map[string]int // messages by name
	cutAt  int            // cut at this message from now on; 0: never
	done   bool           // let VPP execute the message at which the connection is cut
	kill   func()         // called at the cut; nil: only the connection ends
}

// startRelay starts a relay and returns its socket. A link to VPP's stats socket is beside
// it, as the agent expects. The relay ends with the test.
func startRelay(t testing.TB, target string) (l *relay, socket string) {
	t.Helper()
	const stats = "stats.sock"
	dir := t.TempDir()
	socket = filepath.Join(dir, "api.sock")
	err := os.Symlink(filepath.Join(filepath.Dir(target), stats), filepath.Join(dir, stats))
	if err != nil {
		t.Fatal(err)
	}
	listener, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	l = &relay{target: target, counts: map[string]int{}}
	var all sync.WaitGroup
	all.Go(func() {
		for client, err := listener.Accept(); err == nil; client, err = listener.Accept() {
			all.Go(func() { l.lead(client) })
		}
	})
	t.Cleanup(func() {
		listener.Close()
		all.Wait() // clients registered their cleanup later, so they have ended
	})
	return l, socket
}

// lead relays one connection until either end closes it or it is cut.
func (l *relay) lead(client net.Conn) {
	defer client.Close()
	vpp, err := net.Dial("unix", l.target)
	if err != nil {
		return
	}
	p := &relayedConn{relay: l, client: client, vpp: vpp, ended: make(chan struct{})}
	go func() { p.answers(); close(p.ended) }()
	p.requests()
	vpp.Close()
	<-p.ended
}

// take counts a message and reports whether the connection is cut at it.
func (l *relay) take(name string) (cut, done bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.counts[name]++
	if l.cutAt == 0 {
		return false, false
	}
	l.cutAt--
	return l.cutAt == 0, l.done
}

// A relayedConn is one connection through the relay. Two goroutines copy its directions.
// One goroutine per direction: VPP sends events without a request.
type relayedConn struct {
	*relay
	client, vpp net.Conn
	ended       chan struct{} // closed when VPP's direction has ended

	table  sync.Mutex        // guards the fields below
	names  map[uint16]string // message names by ID; VPP assigns the IDs at startup
	silent bool              // answers are dropped until the answer to lastPing
}

// lastPing is the context of the ping that finish sends. VPP executes messages in order, so
// its answer proves that the message before it is done.
const lastPing = 0xfffffff0

// requests copies requests to VPP, and cuts the connection where the test wants it.
func (p *relayedConn) requests() {
	in := bufio.NewReader(p.client)
	for message, err := vppwire.Read(in, nil); err == nil; message, err = vppwire.Read(in, message) {
		out := framed(message)
		// The first message of a connection is not one of the agent's, and VPP has no name
		// for it yet.
		if vppwire.ID(message) != vppwire.CreateID {
			switch cut, done := p.take(vppwire.Counted(p.name(vppwire.ID(message)), message)); {
			case cut && done:
				p.finish(message)
				p.end()
				return
			case cut:
				p.end()
				return
			}
		}
		if _, err := p.vpp.Write(out); err != nil {
			return
		}
	}
}

// end kills VPP if the test wants that. It returns when VPP has ended.
func (p *relayedConn) end() {
	p.mu.Lock()
	kill := p.kill
	p.mu.Unlock()
	if kill != nil {
		kill()
	}
}

// finish lets VPP execute a message and drops the answer, as if the connection broke after
// the execution.
func (p *relayedConn) finish(message []byte) {
	p.table.Lock()
	p.silent = true
	var ping uint16
	for id, name := range p.names {
		if name == "control_ping" {
			ping = id
		}
	}
	p.table.Unlock()
	// One write, so that nothing comes between the message and the ping.
	frames, err := vppwire.Append(framed(message), ping, &memclnt.ControlPing{}, vppwire.Client(message), lastPing)
	if err == nil {
		_, err = p.vpp.Write(frames)
	}
	if err == nil {
		<-p.ended
	}
}

// answers copies VPP's answers to the client.
func (p *relayedConn) answers() {
	defer p.client.Close()
	in := bufio.NewReader(p.vpp)
	for message, err := vppwire.Read(in, nil); err == nil; message, err = vppwire.Read(in, message) {
		if vppwire.ID(message) == vppwire.CreateReplyID {
			p.learn(message)
		}
		p.table.Lock()
		silent := p.silent
		p.table.Unlock()
		if silent {
			if p.name(vppwire.ID(message)) == "control_ping_reply" && vppwire.Context(message, &memclnt.ControlPingReply{}) == lastPing {
				return
			}
			continue
		}
		if _, err := p.client.Write(framed(message)); err != nil {
			return
		}
	}
}

// learn reads the names of messages from the table in VPP's first answer. A name ends with a
// checksum, which is removed.
func (p *relayedConn) learn(message []byte) {
	var welcome memclnt.SockclntCreateReply
	if vppwire.Decode(message, &welcome) != nil {
		return
	}
	names := map[uint16]string{}
	for _, m := range welcome.MessageTable {
		name := strings.TrimRight(m.Name, "\x00")
		names[m.Index] = name[:max(strings.LastIndexByte(name, '_'), 0)]
	}
	p.table.Lock()
	p.names = names
	p.table.Unlock()
}

// name returns the name of a message ID.
func (p *relayedConn) name(id uint16) string {
	p.table.Lock()
	defer p.table.Unlock()
	return p.names[id]
}

// framed returns a message with the header of VPP's socket API: 16 bytes, with the length at
// offset 8.
func framed(message []byte) []byte {
	const header = 16
	out := make([]byte, header, header+len(message))
	binary.BigEndian.PutUint32(out[8:], uint32(len(message)))
	return append(out, message...)
}
