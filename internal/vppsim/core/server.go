package core

import (
	"cmp"
	"fmt"
	"log/slog"
	"maps"
	"net"
	"os"
	"slices"
	"sync"

	"github.com/keyplane/keyplane/internal/vppwire"
)

// A Server is a simulated VPP that can be started and killed many times. Its methods may
// be called from any goroutine.
type Server struct {
	o       Options
	plugins func(*VPP) // registers all plugins at a VPP
	table   *table
	decoder vppwire.Decoder

	life sync.Mutex // guards Start and Kill against each other, and sock
	sock net.Listener
	all  sync.WaitGroup // goroutines of this life

	mu      sync.Mutex // VPP's main thread: guards the fields below
	vpp     *VPP
	ending  bool // Kill runs, so no new client is accepted
	clients map[*Client]bool
	last    uint32 // index of the newest client
	pid     uint32
	cut     cut
	faults  map[string]*Fault
	strange map[string]bool // messages that new clients see with another definition
	counts  map[string]int
	deaths  int
	segment *segment // nil: none
}

// NewServer returns a server that does nothing before Start. plugins registers all plugins
// at the VPP of one life. A release or a plugin that the server does not know is an error.
func NewServer(o Options, plugins func(*VPP)) (*Server, error) {
	o.Socket = cmp.Or(o.Socket, "/run/vpp/api.sock")
	o.Log = cmp.Or(o.Log, slog.New(slog.DiscardHandler))
	o.Release = cmp.Or(o.Release, Releases()[len(Releases())-1])
	s := &Server{
		o: o, plugins: plugins, pid: 4710,
		clients: map[*Client]bool{}, faults: map[string]*Fault{}, counts: map[string]int{},
	}
	s.vpp = newVPP(s)
	table, err := newTable(o, s.vpp.messages)
	if err != nil {
		return nil, err
	}
	s.table = table
	return s, nil
}

// Start starts VPP without any configuration.
func (s *Server) Start() error {
	s.life.Lock()
	defer s.life.Unlock()
	return s.start()
}

// start begins a new life: another process ID, no interfaces, and a new table of messages.
func (s *Server) start() error {
	_ = os.Remove(s.o.Socket) // a killed VPP leaves its socket behind
	sock, err := net.Listen("unix", s.o.Socket)
	if err != nil {
		return fmt.Errorf("simulated VPP: %w", err)
	}
	var stats *segment
	if s.o.StatsSocket != "" {
		stats, err = newSegment(s.o.StatsSocket, s.o.Release)
		if err != nil {
			sock.Close()
			return fmt.Errorf("simulated VPP: %w", err)
		}
	}
	s.sock = sock
	s.mu.Lock()
	s.segment = stats
	s.pid++
	s.ending = false
	s.vpp = newVPP(s)
	s.table.serve(s.vpp.messages)
	s.mu.Unlock()
	s.all.Go(func() { s.accept(sock) })
	if stats != nil {
		s.all.Go(func() { s.serveStats(stats) })
	}
	return nil
}

// Kill ends VPP at once. Its configuration is lost.
func (s *Server) Kill() {
	s.life.Lock()
	defer s.life.Unlock()
	s.kill()
}

// kill ends the process as a signal does: clients see their connection close.
func (s *Server) kill() {
	if s.sock == nil {
		return
	}
	s.mu.Lock()
	s.ending = true // a connection that is being accepted now is closed again
	s.mu.Unlock()
	s.sock.Close()
	s.endStats()
	s.Drop()
	s.all.Wait()
	s.sock = nil
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, p := range s.vpp.plugins {
		if p.Ended != nil {
			p.Ended()
		}
	}
	s.vpp = newVPP(s) // what somebody does until the next start must not end things again
}

// endStats closes the stats segment, if there is one.
func (s *Server) endStats() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.segment != nil {
		s.segment.close()
		s.segment = nil
	}
}

// Restart is Kill and Start.
func (s *Server) Restart() error {
	s.life.Lock()
	defer s.life.Unlock()
	s.kill()
	return s.start()
}

// RestartWithout is Restart of a VPP that has not loaded these plugins; see Options.Without.
func (s *Server) RestartWithout(plugins ...string) error {
	s.life.Lock()
	defer s.life.Unlock()
	s.kill()
	o := s.o
	o.Without = plugins
	t, err := newTable(o, s.vpp.messages)
	if err != nil {
		return err
	}
	s.mu.Lock()
	s.o, s.table = o, t
	s.mu.Unlock()
	return s.start()
}

// Plugins returns the names that Options.Without may have.
func (s *Server) Plugins() []string { return slices.Sorted(maps.Keys(s.table.plugins)) }

// Release returns the release that the server poses as.
func (s *Server) Release() string { return s.o.Release }

// Show returns a page of VPP's command line, for example of "show interface".
func (s *Server) Show(command string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.vpp.show(command)
}

// Do runs f as VPP's main thread would, between two requests. f must not call methods of s.
func (s *Server) Do(f func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f()
}

// Counts returns the number of messages by name since the last call.
func (s *Server) Counts() map[string]int {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := s.counts
	s.counts = map[string]int{}
	return out
}

// accept serves clients until the socket is closed.
func (s *Server) accept(sock net.Listener) {
	for {
		conn, err := sock.Accept()
		if err != nil {
			return
		}
		c := newClient(s, conn)
		s.mu.Lock()
		ending := s.ending
		if !ending {
			s.clients[c] = true
		}
		s.mu.Unlock()
		if ending {
			conn.Close()
			continue
		}
		s.all.Go(c.read)
		s.all.Go(c.write)
	}
}
