package vppsim

import (
	"bufio"
	"net"
	"sync"
	"time"

	"go.fd.io/govpp/api"
	"go.fd.io/govpp/binapi/memclnt"

	"github.com/keyplane/keyplane/internal/vppwire"
	"github.com/keyplane/keyplane/internal/wake"
)

// A client is one connection.
type client struct {
	sim    *Sim
	conn   net.Conn
	reader *bufio.Reader
	wake   wake.Signal // set when there is something to write

	// Guarded by sim.mu.
	index  uint32 // 0: it has not introduced itself
	name   string
	wanted map[string]uint32 // events it wants, with the pid it gave
	events []api.Message     // sent after the answers to what has come already

	mu      sync.Mutex // guards what follows
	out     []byte
	closed  bool
	leaving bool // to be closed once all is written
}

func newClient(s *Sim, conn net.Conn) *client {
	return &client{
		sim: s, conn: conn, reader: bufio.NewReaderSize(conn, 64<<10),
		wake: wake.New(), wanted: map[string]uint32{},
	}
}

// read serves what comes until the connection ends.
func (c *client) read() {
	defer func() {
		c.sim.mu.Lock()
		delete(c.sim.clients, c)
		c.sim.mu.Unlock()
		c.close()
	}()
	var buf []byte
	for {
		message, err := vppwire.Read(c.reader, buf)
		if err != nil {
			return
		}
		c.serve(message)
		if c.reader.Buffered() == 0 {
			c.drained()
		}
		buf = message
	}
}

// serve answers one message, unless it is none that a client may send.
func (c *client) serve(message []byte) {
	s := c.sim
	s.mu.Lock()
	defer s.mu.Unlock()
	if c.ended() {
		return
	}
	id := vppwire.ID(message)
	if id == vppwire.CreateID {
		c.introduced(message)
		return
	}
	e, known := s.table.byID[id]
	if !known || len(message) < 10 || c.index == 0 || vppwire.Client(message) != c.index {
		return // no answer, as VPP does
	}
	if s.counts[e.name]++; c.isCut(e, message) || len(s.faults) > 0 && c.fails(e, message) {
		return
	}
	e.serve(c, message)
}

// isCut ends the connection if this is the message at which it is to end.
func (c *client) isCut(e *entry, message []byte) bool {
	cut := &c.sim.cut
	if cut.after == 0 {
		return false
	}
	if cut.after--; cut.after > 0 {
		return false
	}
	if cut.done {
		e.serve(c, message)
	}
	c.truncate(0)
	c.close()
	return true
}

// fails does what is to go wrong, and tells whether that was all.
func (c *client) fails(e *entry, message []byte) bool {
	f := c.sim.faults[e.name]
	if f == nil {
		return false
	}
	if f.Skip > 0 {
		f.Skip--
		return false
	}
	if f.Times > 0 {
		if f.Times--; f.Times == 0 {
			delete(c.sim.faults, e.name)
		}
	}
	<-time.After(f.Delay) // and all that come behind wait too
	if !f.Die && !f.Mute && f.Retval == 0 {
		return false
	}
	before := c.queued()
	if f.Done {
		e.serve(c, message)
		c.truncate(before)
	}
	switch {
	case f.Die:
		c.sim.die(f.Respawn)
	case f.Retval != 0:
		e.refuse(c, message, f.Retval)
	}
	return true
}

// introduced makes the connection that of a client, and hands over the message table.
func (c *client) introduced(message []byte) {
	var hello memclnt.SockclntCreate
	if err := vppwire.Decode(message, &hello); err != nil {
		return
	}
	if c.index == 0 {
		c.sim.last++
		c.index = 0x80000000 + c.sim.last
	}
	c.name = hello.Name
	welcome := &memclnt.SockclntCreateReply{Index: c.index, MessageTable: c.sim.table.entries}
	c.send(vppwire.CreateReplyID, welcome, vppwire.Context(message, &hello))
}

// answer sends an answer or an event, unless this release has another form of it.
func (c *client) answer(m api.Message, context uint32) {
	if id := c.sim.table.id(m); id != 0 {
		c.send(id, m, context)
	}
}

func (c *client) send(id uint16, m api.Message, context uint32) {
	c.mu.Lock()
	defer c.mu.Unlock()
	out, err := vppwire.Append(c.out, id, m, c.index, context)
	if err != nil {
		c.sim.o.Log.Error("simulated VPP cannot answer", "message", m.GetMessageName(), "err", err)
	}
	if c.out = out; len(out) > mostQueued {
		c.flush()
	}
}

// mostQueued is how many bytes wait for more to come.
const mostQueued = 32 << 10

func (c *client) queued() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.out)
}

func (c *client) truncate(n int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.out = c.out[:n]
}

// drained is called when nothing more has come: events go out, and all that is queued.
func (c *client) drained() {
	c.sim.mu.Lock()
	c.sendEvents()
	c.sim.mu.Unlock()
	c.flush()
}

// sendEvents queues the events that waited for the answers before them.
func (c *client) sendEvents() {
	for _, e := range c.events {
		c.answer(e, 0)
	}
	c.events = nil
}

func (c *client) flush() {
	c.wake.Set()
}

// write writes what is queued until the connection is closed.
func (c *client) write() {
	var spare []byte
	for range c.wake.C() {
		c.mu.Lock()
		batch := c.out
		c.out = spare[:0]
		closed, leaving := c.closed, c.leaving
		c.mu.Unlock()
		if closed {
			return
		}
		if _, err := c.conn.Write(batch); err != nil {
			return
		}
		if leaving {
			c.conn.Close()
		}
		spare = batch
	}
}

// leaves closes the connection when the answer to that is written.
func (c *client) leaves() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.leaving = true
}

func (c *client) ended() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.closed
}

func (c *client) close() {
	c.mu.Lock()
	c.closed = true
	c.mu.Unlock()
	c.conn.Close()
	c.flush()
}
