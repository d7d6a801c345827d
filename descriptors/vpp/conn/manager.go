package conn

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"go.fd.io/govpp/api"
	"go.fd.io/govpp/binapi/memclnt"
	"go.fd.io/govpp/binapi/vpe"

	"github.com/keyplane/keyplane/internal/backoff"
)

// Options are those of a Manager; the zero value works.
type Options struct {
	Socket string // Defaults to /run/vpp/api.sock.
	Name   string // what VPP shows for this client. Defaults to "keyplane".

	// A connection that has been silent for ProbeInterval is probed with a control
	// ping; one that stays silent for ReplyTimeout more is given up. Default to 1 s
	// and 250 ms. A VPP that answers again after that was busy, with a long list: it is
	// given twice the ReplyTimeout each time, up to a minute.
	ProbeInterval, ReplyTimeout time.Duration
	// While VPP is not there it is looked for again after a time, which doubles from
	// MinBackoff up to MaxBackoff. Default to 50 ms and 1 s. From then on a socket that
	// is not there is waited for.
	MinBackoff, MaxBackoff time.Duration

	// Events are what is done with messages that nobody has asked for, by kind. It
	// must not block and not keep the message.
	Events map[api.Message]func(message []byte)
	// Begin is called with each new connection before anything else uses it: to
	// subscribe to events. An error gives the connection up.
	Begin func(ctx context.Context, c *Conn) error
	// Ready is called after Begin, when the connection can be used; Lost when it
	// cannot any more, and each time that there is a new reason why there is none; it is
	// for Lost to log that.
	Ready func(About)
	Lost  func(why error)

	Log *slog.Logger // Defaults to slog.Default.
}

// About is what VPP says of itself.
type About struct {
	Version   string // "25.10-release"
	BuildDate string
	PID       uint32 // of its process
	Messages  int
	// Same tells that it is the process that was given up because it did not answer: it
	// was busy, and has all that it had.
	Same bool
}

// mostPatience is what the ReplyTimeout of a busy VPP grows to.
const mostPatience = time.Minute

// A Manager keeps a connection to VPP. Its other methods may be called from any goroutine.
type Manager struct {
	o   Options
	now atomic.Pointer[Conn] // nil: none

	mu   sync.Mutex // guards info
	info Info

	// Of the goroutine of Run:
	patience time.Duration // the ReplyTimeout of this process of VPP
	hung     uint32        // the process that was given up last because it did not answer; 0: none was
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
	return &Manager{o: o, info: Info{Socket: o.Socket}, patience: o.ReplyTimeout}
}

// Run keeps a connection until ctx ends, and then returns nil: that VPP is not there
// is a normal state.
func (m *Manager) Run(ctx context.Context) error {
	reason := ""
	retry := backoff.Backoff{Min: m.o.MinBackoff, Max: m.o.MaxBackoff}
	for {
		was, err := m.live(ctx)
		if ctx.Err() != nil {
			return nil
		}
		if was && !errors.Is(err, ErrProtocol) { // else the next one may end in the same way
			retry.Reset()
		}
		if was || err.Error() != reason {
			reason = err.Error()
			m.isDown(err)
			m.o.Lost(err)
		}
		longest := retry.Longest()
		if !backoff.Sleep(ctx, retry.Next()) {
			return nil
		}
		if longest && errors.Is(err, fs.ErrNotExist) {
			appears(ctx, m.o.Socket)
			retry.Reset()
		}
	}
}

// live is one connection, from its beginning to its end. It tells whether it was one
// that could be used.
func (m *Manager) live(ctx context.Context) (was bool, err error) {
	dialing, cancel := context.WithTimeout(ctx, m.o.ProbeInterval+m.o.ReplyTimeout)
	defer cancel()
	c, err := Dial(dialing, m.o.Socket, m.o.Name)
	if err != nil {
		return false, err
	}
	for event, take := range m.o.Events {
		c.OnEvent(event, take)
	}
	ended := make(chan struct{})
	go func() { _ = c.Run(ctx); close(ended) }() // why it ended, c keeps
	if err := Safely(func() error { return m.begin(ctx, c) }); err != nil {
		m.now.Store(nil)
		c.Close(err)
		<-ended
		return false, c.ended()
	}
	m.probe(c, ended)
	m.now.Store(nil)
	if m.hung = 0; errors.Is(c.ended(), ErrHung) {
		m.hung = c.pid
	}
	return true, c.ended()
}

// Drop ends the connection of the moment, because of why; without one it does nothing. Run begins the
// next.
func (m *Manager) Drop(why error) {
	if c := m.now.Load(); c != nil {
		c.Close(fmt.Errorf("%w: %w", ErrProtocol, why))
	}
}

// begin makes a connection one that others may use.
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
	if err := m.o.Begin(ctx, c); err != nil {
		return err
	}
	m.now.Store(c)
	about := About{Version: version.Version, BuildDate: version.BuildDate, PID: c.pid, Messages: c.Messages(), Same: m.hung != 0 && m.hung == c.pid}
	if m.patience = m.patienceWith(about); about.Same {
		m.o.Log.Info("VPP was busy, and is given longer", "socket", m.o.Socket, "pid", c.pid, "silent", m.o.ProbeInterval+m.patience)
	}
	m.o.Log.Info("VPP is connected", "socket", m.o.Socket, "version", about.Version)
	m.isUp(about)
	m.o.Ready(about)
	return nil
}

// patienceWith is how long an answer may take.
func (m *Manager) patienceWith(about About) time.Duration {
	if about.Same {
		return max(m.o.ReplyTimeout, min(2*m.patience, mostPatience))
	}
	return m.o.ReplyTimeout
}

// probe watches over the connection until it has ended.
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
		case silent < time.Since(pinged): // it has spoken since
			pinged = time.Now()
			go c.ping()
			timer.Reset(m.patience)
		default:
			c.Close(fmt.Errorf("%w: silent for %s", ErrHung, silent.Round(time.Millisecond)))
			timer.Reset(m.o.ProbeInterval)
		}
	}
}

// ping has VPP say something. It ends with the connection.
func (c *Conn) ping() {
	_ = c.Call(context.Background(), &memclnt.ControlPing{}, &memclnt.ControlPingReply{}) // that something came is all that counts
}

// Call implements API with the connection of the moment; without one it is ErrLost.
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
func (m *Manager) Details(ctx context.Context, request, detail api.Message, take func(message []byte) error) error {
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

// Has implements API. Without a connection VPP has nothing.
func (m *Manager) Has(messages ...api.Message) bool {
	c := m.now.Load()
	return c != nil && c.Has(messages...)
}
