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

// A line is a socket that leads to that of a real VPP. It counts the messages that go to VPP,
// and can cut the connection at one of them, as a simulated one does by itself.
type relay struct {
	target string // VPP's socket

	mu     sync.Mutex     // guards what follows
	counts map[string]int // of messages of each name
	cutAt  int            // 0: at none
	done   bool           // VPP gets the one at which it is cut, and does what it asks
}

// startLine returns the line, and the socket where it begins, with that of VPP's counters
// beside it. The test ends it.
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
		all.Wait() // the clients of the test have ended before
	})
	return l, socket
}

// lead is one connection, until either end closes it or it is cut.
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

// take counts a message, and tells whether the connection is cut here.
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

// A passage is one connection by way of a line.
type relayedConn struct {
	*relay
	client, vpp net.Conn
	ended       chan struct{} // closed when VPP says nothing more

	table  sync.Mutex        // guards what follows
	names  map[uint16]string // of messages, by number
	silent bool              // nothing more is answered; VPP's answer to lastPing is the last
}

// lastPing is the context of the ping that tells when VPP has done what came before it.
const lastPing = 0xfffffff0

// requests hands on what the client asks.
func (p *relayedConn) requests() {
	in := bufio.NewReader(p.client)
	for message, err := vppwire.Read(in, nil); err == nil; message, err = vppwire.Read(in, message) {
		out := framed(message)
		if vppwire.ID(message) != vppwire.CreateID {
			switch cut, done := p.take(p.name(vppwire.ID(message))); {
			case cut && done:
				p.finish(message)
				return
			case cut:
				return
			}
		}
		if _, err := p.vpp.Write(out); err != nil {
			return
		}
	}
}

// finish has VPP do what is asked, and answer it to nobody.
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
	frames, err := vppwire.Append(framed(message), ping, &memclnt.ControlPing{}, vppwire.Client(message), lastPing)
	if err == nil {
		_, err = p.vpp.Write(frames)
	}
	if err == nil {
		<-p.ended
	}
}

// answers hands on what VPP says.
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

// learn takes the names of messages from the table that VPP hands over.
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

func (p *relayedConn) name(id uint16) string {
	p.table.Lock()
	defer p.table.Unlock()
	return p.names[id]
}

// framed is a message with its header.
func framed(message []byte) []byte {
	const header = 16
	out := make([]byte, header, header+len(message))
	binary.BigEndian.PutUint32(out[8:], uint32(len(message)))
	return append(out, message...)
}
