package conn

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"go.fd.io/govpp/api"
	"go.fd.io/govpp/binapi/memclnt"
	"go.fd.io/govpp/binapi/vpe"

	"github.com/keyplane/keyplane/internal/appear"
	"github.com/keyplane/keyplane/internal/backoff"
)

// Options are the options of a Manager; the zero value works.
type Options struct {
	Socket string // Defaults to /run/vpp/api.sock.
	Name   string // the name of this client in VPP. Defaults to "keyplane".

	// A connection without messages for ProbeInterval is probed with a control ping. If it
	// stays silent for ReplyTimeout, it is closed. Defaults are 1 s and 250 ms. If the
	// same VPP answers later, it was busy with a long list. Then the ReplyTimeout is
	// doubled, up to a minute.
	ProbeInterval, ReplyTimeout time.Duration
	// While VPP is missing, the Manager retries after MinBackoff, and doubles the time up
	// to MaxBackoff. Defaults are 50 ms and 1 s. It retries at once when the socket is
	// created, and only then if it has been missing for long.
	MinBackoff, MaxBackoff time.Duration

	// Events are the receivers of messages without a request, by type. A receiver must
	// neither block nor keep the message.
	Events map[api.Message]func(message []byte)
	// Begin is called with each new connection before all other uses: to subscribe to
	// events. An error closes the connection.
	Begin func(ctx context.Context, c *Conn) error
	// Ready is called after Begin, when the connection is usable. Lost is called when it
	// is no longer usable, and whenever the reason changes; Lost is to log the reason.
	Ready func(About)
	Lost  func(why error)

	// Run is the About.Run of the last connection of an earlier Manager. Defaults to none.
	Run string

	Log *slog.Logger // Defaults to slog.Default.
}

// About is VPP's description of itself.
type About struct {
	Version   string // "25.10-release"
	BuildDate string
	PID       uint32 // of its process
	Messages  int
	// Run identifies the run of VPP, from its start to its end. Two connections with the same one have the
	// same VPP, which has kept its state. If it is unclear, no other connection has the same.
	Run string
	// Same means that it is the run of the connection before, or Options.Run.
	Same bool
}

// mostPatience is the largest ReplyTimeout of a busy VPP.
const mostPatience = time.Minute

// A Manager keeps a connection to VPP. Its other methods may be called from any goroutine.
type Manager struct {
	o   Options
	now atomic.Pointer[Conn] // nil: there is no connection

	counts counts

	mu   sync.Mutex // guards info
	info Info

	// Owned by the goroutine of Run:
	patience time.Duration // the ReplyTimeout of this VPP process
	run      string        // of the last connection; empty: none
	hung     bool          // it did not answer in time
}

// NewManager returns a Manager that connects when it runs.
func NewManager(o Options) *Manager {
	o.Socket = cmp.Or(o.Socket, "/run/vpp/api.sock")
	o.Name = cmp.Or(o.Name, "keyplane")
	o.ProbeInterval = cmp.Or(o.ProbeInterval, time.Second)
	o.ReplyTimeout = cmp.Or(o.ReplyTimeout, 250*time.Millisecond)
	o.MinBackoff = cmp.Or(o.MinBackoff, 50*time.Millisecond)
	o.MaxBackoff = cmp.Or(o.MaxBackoff, time.Second)
	o.Log = cmp.Or(o.Log, slog.Default())
	if o.Begin == nil {
		o.Begin = func(context.Context, *Conn) error { return nil }
	}
	if o.Ready == nil {
		o.Ready = func(About) {}
	}
	if o.Lost == nil {
		o.Lost = func(error) {}
	}
	return &Manager{o: o, info: Info{Socket: o.Socket}, patience: o.ReplyTimeout, run: o.Run}
}

// Run keeps a connection until ctx ends, and then returns nil. A missing VPP is a normal
// state.
func (m *Manager) Run(ctx context.Context) error {
	reason := ""
	retry := backoff.Backoff{Min: m.o.MinBackoff, Max: m.o.MaxBackoff}
	absent := appear.Absence{Path: m.socket()}
	defer absent.End()
	for {
		began := time.Now()
		was, err := m.live(ctx, &absent)
		if ctx.Err() != nil {
			return nil
		}
		absent.Watch() // if it cannot, Wait tries again
		if was && m.startsOver(time.Since(began), err) {
			retry.Min = m.o.MinBackoff
			retry.Reset()
		}
		if was || err.Error() != reason {
			reason = err.Error()
			m.isDown(err)
			m.o.Lost(err)
		}
		calm := retry.Longest() && errors.Is(err, fs.ErrNotExist)
		if absent.Wait(ctx, retry.Next(), calm) {
			retry.Min = min(m.o.MinBackoff, appear.BindToListen)
			retry.Reset()
		}
	}
}

// startsOver reports whether the waits start over after a usable connection that has lasted so long and has ended with
// err. One that ended at once, or by a fault of the protocol, can be followed by others that end in the same way.
func (m *Manager) startsOver(lasted time.Duration, err error) bool {
	return lasted >= m.o.MaxBackoff && !errors.Is(err, ErrProtocol)
}

// socket is the absolute path of VPP's socket. Without a working directory it is the path
// of the options, which then cannot be watched.
func (m *Manager) socket() string {
	path, err := filepath.Abs(m.o.Socket)
	if err != nil {
		return m.o.Socket
	}
	return path
}

// live is one connection, from its beginning to its end, which ends the absence. It tells
// whether the connection was usable.
func (m *Manager) live(ctx context.Context, absent *appear.Absence) (was bool, err error) {
	dialing, cancel := context.WithTimeout(ctx, m.o.ProbeInterval+m.o.ReplyTimeout)
	defer cancel()
	c, err := Dial(dialing, m.o.Socket, m.o.Name)
	if err != nil {
		return false, err
	}
	c.counts = &m.counts
	for event, take := range m.o.Events {
		c.OnEvent(event, take)
	}
	ended := make(chan struct{})
	go func() { _ = c.Run(ctx); close(ended) }() // c keeps the reason
	if err := Safely(func() error { return m.begin(ctx, c) }); err != nil {
		m.now.Store(nil)
		c.Close(err)
		<-ended
		return false, c.ended()
	}
	absent.End()
	m.probe(c, ended)
	m.now.Store(nil)
	m.hung = errors.Is(c.ended(), ErrHung)
	return true, c.ended()
}

// Drop closes the current connection with a reason. Without a connection it does nothing.
// Run begins the next one.
func (m *Manager) Drop(why error) {
	if c := m.now.Load(); c != nil {
		c.Close(fmt.Errorf("%w: %w", ErrProtocol, why))
	}
}

// begin prepares a connection for use by others.
func (m *Manager) begin(ctx context.Context, c *Conn) error {
	ctx, cancel := context.WithTimeout(ctx, 10*(m.o.ProbeInterval+m.o.ReplyTimeout))
	defer cancel()
	var version vpe.ShowVersionReply
	if err := c.Call(ctx, &vpe.ShowVersion{}, &version); err != nil {
		return fmt.Errorf("asking for its version: %w", err)
	}
	c.release = version.Version
	var ping memclnt.ControlPingReply
	if err := c.Call(ctx, &memclnt.ControlPing{}, &ping); err != nil {
		return fmt.Errorf("asking for its process: %w", err)
	}
	c.pid = ping.VpePID
	c.run = identity(c, m.o.Socket)
	if err := m.o.Begin(ctx, c); err != nil {
		return err
	}
	m.now.Store(c)
	about := About{Version: version.Version, BuildDate: version.BuildDate, PID: c.pid, Messages: c.Messages(), Run: c.run}
	about.Same = about.Run == m.run
	m.run = about.Run
	wasBusy := about.Same && m.hung
	if m.patience = m.patienceWith(wasBusy); wasBusy {
		m.o.Log.Info("VPP was busy, and is given longer", "socket", m.o.Socket, "pid", c.pid, "silent", m.o.ProbeInterval+m.patience)
	}
	m.o.Log.Info("VPP is connected", "socket", m.o.Socket, "version", about.Version)
	m.isUp(about)
	m.o.Ready(about)
	return nil
}

// patienceWith returns the ReplyTimeout.
func (m *Manager) patienceWith(wasBusy bool) time.Duration {
	if wasBusy {
		return max(m.o.ReplyTimeout, min(2*m.patience, mostPatience))
	}
	return m.o.ReplyTimeout
}

// probe supervises the connection until it ends.
func (m *Manager) probe(c *Conn, ended <-chan struct{}) {
	timer := time.NewTimer(m.o.ProbeInterval)
	defer timer.Stop()
	for pinged := (time.Time{}); ; {
		select {
		case <-ended:
			return
		case <-timer.C:
		}
		silent := c.Silent()
		switch {
		case silent < m.o.ProbeInterval:
			timer.Reset(m.o.ProbeInterval - silent)
		case silent < time.Since(pinged): // a message came meanwhile
			pinged = time.Now()
			go c.ping()
			timer.Reset(m.patience)
		default:
			c.Close(fmt.Errorf("%w: silent for %s", ErrHung, silent.Round(time.Millisecond)))
			timer.Reset(m.o.ProbeInterval)
		}
	}
}

// ping makes VPP send a message. It ends with the connection.
func (c *Conn) ping() {
	_ = c.Call(context.Background(), &memclnt.ControlPing{}, &memclnt.ControlPingReply{}) // any message counts
}

// Call implements API with the current connection; without one the error is ErrLost.
func (m *Manager) Call(ctx context.Context, request, reply api.Message) error {
	if c := m.now.Load(); c != nil {
		return c.Call(ctx, request, reply)
	}
	return ErrLost
}

// Batch implements API.
func (m *Manager) Batch(ctx context.Context, steps ...*Step) error {
	if c := m.now.Load(); c != nil {
		return c.Batch(ctx, steps...)
	}
	for _, s := range steps {
		s.Err = ErrLost
	}
	return ErrLost
}

// Details implements API.
func (m *Manager) Details(ctx context.Context, request, detail api.Message, take Take) error {
	if c := m.now.Load(); c != nil {
		return c.Details(ctx, request, detail, take)
	}
	return ErrLost
}

// First implements API.
func (m *Manager) First(variants ...api.Message) (api.Message, error) {
	if c := m.now.Load(); c != nil {
		return c.First(variants...)
	}
	return nil, ErrLost
}

// Has implements API. Without a connection it returns false.
func (m *Manager) Has(messages ...api.Message) bool {
	c := m.now.Load()
	return c != nil && c.Has(messages...)
}
