// Package conn is the connection to VPP's binary API.
//
//	m := conn.NewManager(conn.Options{Socket: "/run/vpp/api.sock", ...})
//	go m.Run(ctx)
//	err := m.Call(ctx, &vlib.CreateLoopback{}, reply)
//	interfaces, err := conn.Dump[interfaces.SwInterfaceDetails](ctx, m, request)
//
// A [Conn] is one connection. It ends when VPP exits or no longer answers, and all its
// calls end with it. A [Manager] begins the next one. Many goroutines can share a
// connection. Their requests go out in the order of the calls, several in one write, and
// VPP answers in that order.
//
// VPP gives each new client a table of its messages with the checksums of their
// definitions. The table decides which messages are used; the release never does.
//
// The package uses GoVPP's bindings and codec, but not its adapter. That writes each
// message separately, and does not report the end of a connection.
package conn

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"reflect"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"go.fd.io/govpp/api"
	"go.fd.io/govpp/binapi/memclnt"

	"github.com/keyplane/keyplane/internal/vppwire"
)

// A Conn is one connection. Its methods may be called from any goroutine, except Run,
// which is called once.
type Conn struct {
	sock    net.Conn
	reader  *bufio.Reader
	client  uint32
	numbers map[string]uint16 // by name and checksum; never changed
	names   map[string]bool   // of numbers, without checksums

	listings map[string][]string // see listings; never changed
	kinds    sync.Map            // reflect.Type to kind
	events   map[uint16]func(message []byte)
	idle     sync.Pool // of *call
	decoder  vppwire.Decoder

	born    time.Time
	spoke   atomic.Int64 // time of the last message, nanoseconds since born
	release string
	pid     uint32 // of VPP's process
	run     string // see About
	limits  limits
	counts  *counts // of the Manager; nil: none

	mu      sync.Mutex // guards all fields below
	out     []byte     // frames to be written
	spare   []byte     // the buffer of the last write
	writing bool       // a goroutine is writing
	calls   map[uint32]*call
	last    uint32 // the last context
	err     error  // the reason for the end
}

// A kind is the description of a message type, without its fields.
type kind struct {
	id     uint16
	known  bool
	retval int // the index of the field with the return value; -1: it has none
}

// Dial connects to the socket of VPP's API, and reads its message table.
func Dial(ctx context.Context, socket, name string) (*Conn, error) {
	var d net.Dialer
	sock, err := d.DialContext(ctx, "unix", socket)
	if err != nil {
		return nil, err
	}
	c := &Conn{
		born: time.Now(), sock: sock, numbers: map[string]uint16{}, names: map[string]bool{}, listings: parseListings(),
		events: map[uint16]func([]byte){}, calls: map[uint32]*call{}, limits: defaultLimits,
	}
	c.reader = bufio.NewReaderSize(ear{c}, 64<<10)
	stop := context.AfterFunc(ctx, func() { sock.Close() })
	defer stop()
	if err := c.introduce(name); err != nil {
		sock.Close()
		return nil, fmt.Errorf("%s: %w", socket, errors.Join(err, ctx.Err()))
	}
	return c, nil
}

// introduce registers the agent as a client of VPP.
func (c *Conn) introduce(name string) error {
	hello, err := vppwire.Append(nil, vppwire.CreateID, &memclnt.SockclntCreate{Name: name}, 0, 1)
	if err != nil {
		return err
	}
	if _, err := c.sock.Write(hello); err != nil {
		return err
	}
	message, err := vppwire.Read(c.reader, nil)
	if err != nil {
		return err
	}
	var welcome memclnt.SockclntCreateReply
	if vppwire.ID(message) != vppwire.CreateReplyID {
		return fmt.Errorf("%w: message %d answers sockclnt_create", ErrProtocol, vppwire.ID(message))
	}
	if err := vppwire.Decode(message, &welcome); err != nil {
		return fmt.Errorf("%w: %w", ErrProtocol, err)
	}
	if welcome.Response != 0 {
		return fmt.Errorf("VPP does not want us: sockclnt_create: %w", api.VPPApiError(welcome.Response))
	}
	c.client = welcome.Index
	return c.number(welcome.MessageTable)
}

// number stores the numbers of the messages. It refuses a table with two messages of one
// number.
func (c *Conn) number(table []memclnt.MessageTableEntry) error {
	names := make(map[uint16]string, len(table))
	for _, entry := range table {
		name, _, _ := strings.Cut(entry.Name, "\x00")
		if other, taken := names[entry.Index]; taken && other != name {
			return fmt.Errorf("%w: %q and %q both have the number %d", ErrProtocol, other, name, entry.Index)
		}
		if number, again := c.numbers[name]; again && number != entry.Index {
			return fmt.Errorf("%w: %q has the numbers %d and %d", ErrProtocol, name, number, entry.Index)
		}
		names[entry.Index], c.numbers[name] = name, entry.Index
		c.names[withoutChecksum(name)] = true
	}
	return nil
}

// OnEvent registers f for the messages of an event's type. f must neither block nor keep
// the message. OnEvent is called before Run. It tells whether VPP has the message.
func (c *Conn) OnEvent(event api.Message, f func(message []byte)) bool {
	k := c.kindOf(event)
	if k.known {
		c.events[k.id] = f
	}
	return k.known
}

// Run serves calls until the connection or ctx ends, and returns the reason. A message
// that cannot be processed ends the connection with ErrProtocol: a panic of its receiver,
// or details without an end.
func (c *Conn) Run(ctx context.Context) error {
	stop := context.AfterFunc(ctx, func() { c.Close(ctx.Err()) })
	defer stop()
	var buf []byte
	for {
		message, err := vppwire.Read(c.reader, buf)
		if err != nil {
			c.Close(err)
			return c.ended()
		}
		if err := c.dispatch(message); err != nil {
			c.Close(err)
			return c.ended()
		}
		buf = message
	}
}

// Close ends the connection and all calls, and gives them the reason.
func (c *Conn) Close(why error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.err != nil {
		return
	}
	c.err = fmt.Errorf("%w: %w", ErrLost, why)
	c.sock.Close()
	for _, one := range c.calls {
		one.done <- fmt.Errorf("%w: %w", ErrCut, c.err)
	}
	c.calls = nil
}

// ended returns the reason why the connection has ended; nil: it has not.
func (c *Conn) ended() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.err
}

// An ear reads from VPP, and records the time.
type ear struct{ *Conn }

// Read notes the time of the last byte, by which the probe knows that VPP is alive.
func (e ear) Read(p []byte) (int, error) {
	n, err := e.sock.Read(p)
	if n > 0 {
		e.spoke.Store(int64(time.Since(e.born)))
	}
	return n, err
}

// Silent returns the time since the last message.
func (c *Conn) Silent() time.Duration { return time.Since(c.born) - time.Duration(c.spoke.Load()) }

// Has tells whether VPP has all these messages with our checksums.
func (c *Conn) Has(messages ...api.Message) bool {
	for _, m := range messages {
		if !c.kindOf(m).known {
			return false
		}
	}
	return true
}

// First implements API.
func (c *Conn) First(variants ...api.Message) (api.Message, error) {
	for _, m := range variants {
		if c.Has(m) {
			return m, nil
		}
	}
	return nil, c.missing(variants[0])
}

// PID returns the number of VPP's process. A Manager must have begun the connection.
func (c *Conn) PID() uint32 { return c.pid }

// RunOfVPP returns About.Run. A Manager must have begun the connection.
func (c *Conn) RunOfVPP() string { return c.run }

// Messages returns the number of messages that VPP has.
func (c *Conn) Messages() int { return len(c.numbers) }

// kindOf returns the number of a message, and the place of its return value. Reflection
// finds both once for each type.
func (c *Conn) kindOf(m api.Message) kind {
	t := reflect.TypeOf(m)
	if k, ok := c.kinds.Load(t); ok {
		return k.(kind)
	}
	id, known := c.numbers[vppwire.Name(m)]
	k := kind{id: id, known: known, retval: -1}
	if field, ok := t.Elem().FieldByName("Retval"); ok {
		k.retval = field.Index[0] // not always the first one: acl_add_replace_reply has the list's number before it
	}
	c.kinds.Store(t, k)
	return k
}

// lacks reports that VPP has no definition of a message, known or not.
func (c *Conn) lacks(m api.Message) bool { return !c.names[m.GetMessageName()] }

// withoutChecksum returns the name of a message of the table, which ends with its checksum.
func withoutChecksum(name string) string { return name[:max(0, strings.LastIndexByte(name, '_'))] }

// missing returns the error for a message that VPP does not have.
func (c *Conn) missing(m api.Message) error {
	return &Missing{Message: vppwire.Name(m), Release: c.release, Plugin: c.notLoaded(m.GetMessageName())}
}
