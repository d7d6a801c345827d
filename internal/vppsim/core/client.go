package core

import (
	"bufio"
	"net"
	"sync"

	"go.fd.io/govpp/api"
	"go.fd.io/govpp/binapi/memclnt"

	"github.com/keyplane/keyplane/internal/vppwire"
	"github.com/keyplane/keyplane/internal/wake"
)

// A Client is one connection. One goroutine reads and serves its messages, another one writes.
type Client struct {
	server *Server
	conn   net.Conn
	reader *bufio.Reader
	wake   wake.Signal // set when there is something to write

	// Guarded by server.mu.
	index  uint32            // 0: the client has not sent sockclnt_create
	wanted map[string]uint32 // events that it asked for, with the pid that it gave
	events []api.Message     // sent after the answers to the requests received so far

	mu      sync.Mutex // guards the fields below
	out     []byte
	closed  bool
	leaving bool // the connection closes after the next write
}

// newClient returns a client that has not introduced itself.
func newClient(s *Server, conn net.Conn) *Client {
	return &Client{
		server: s, conn: conn, reader: bufio.NewReaderSize(conn, 64<<10),
		wake: wake.New(), wanted: map[string]uint32{},
	}
}

// read serves messages until the connection ends.
func (c *Client) read() {
	defer func() {
		c.server.mu.Lock()
		delete(c.server.clients, c)
		c.server.mu.Unlock()
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

// serve answers one message. VPP gives no answer to an unknown number, to a short message,
// to a client without sockclnt_create, and to a request with the index of another client;
// the connection stays open.
func (c *Client) serve(message []byte) {
	s := c.server
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
		return
	}
	s.counts[vppwire.Counted(e.name, message)]++
	if c.isCut(e, message) || len(s.faults) > 0 && c.fails(e, message) {
		return
	}
	e.serve(c, message)
}

// introduced serves sockclnt_create: it gives the client an index and the message table. A
// second one on the same connection is answered with the same index.
func (c *Client) introduced(message []byte) {
	var hello memclnt.SockclntCreate
	if err := c.server.decoder.Decode(message, &hello); err != nil {
		return
	}
	if c.index == 0 {
		c.server.last++
		c.index = 0x80000000 + c.server.last
	}
	welcome := &memclnt.SockclntCreateReply{Index: c.index, MessageTable: c.server.shownTable()}
	c.send(vppwire.CreateReplyID, welcome, vppwire.Context(message, &hello))
}

// answer sends an answer or an event. A release that has another definition of the message
// sends nothing.
func (c *Client) answer(m api.Message, context uint32) {
	if id := c.server.table.id(m); id != 0 {
		c.send(id, m, context)
	}
}

// send queues an answer or an event; another goroutine writes. Large queues are written at
// once.
func (c *Client) send(id uint16, m api.Message, context uint32) {
	c.mu.Lock()
	defer c.mu.Unlock()
	out, err := vppwire.Append(c.out, id, m, c.index, context)
	if err != nil {
		c.server.o.Log.Error("simulated VPP cannot answer", "message", m.GetMessageName(), "err", err)
	}
	c.out = out
	if len(out) > maxQueued {
		c.flush()
	}
}

// maxQueued is the number of bytes that wait for the answers of further requests.
const maxQueued = 32 << 10

// queued returns the number of bytes that wait.
func (c *Client) queued() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.out)
}

// truncate drops queued bytes behind the first n: answers that a crash cuts off.
func (c *Client) truncate(n int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.out = c.out[:n]
}

// drained sends the events and all queued answers. The reader calls it when no further
// request has been received.
func (c *Client) drained() {
	c.server.mu.Lock()
	c.sendEvents()
	c.server.mu.Unlock()
	c.flush()
}

// sendEvents queues the events behind the answers.
func (c *Client) sendEvents() {
	for _, e := range c.events {
		c.answer(e, 0)
	}
	c.events = nil
}

// flush wakes the writer.
func (c *Client) flush() { c.wake.Set() }

// write writes queued bytes until the connection is closed.
func (c *Client) write() {
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

// leaves closes the connection once the answer to sockclnt_delete is written.
func (c *Client) leaves() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.leaving = true
}

// ended reports whether the client was closed.
func (c *Client) ended() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.closed
}

// close closes the connection, and wakes the writer so that it ends.
func (c *Client) close() {
	c.mu.Lock()
	c.closed = true
	c.mu.Unlock()
	c.conn.Close()
	c.flush()
}
