// Package vppsim is a simulated VPP: it speaks VPP's binary API over the same socket,
// keeps what it is told, answers dumps, sends events, and fails, stalls or dies when
// it is told to.
//
//	sim := vppsim.New(vppsim.Options{Socket: path, Release: "24.10"})
//	err := sim.Start()
//	defer sim.Kill()
//
// It forwards no packet. What it answers is what a real VPP was seen to answer, odd
// cases included; the tests of this package are the list, and run against a real VPP
// as well. It has the messages that our descriptors use, in the definitions of 25.10, and
// poses as an older or newer release by leaving out those that are not the same there.
//
// All requests change one world, one after the other, as in VPP's main thread.
package vppsim

import (
	"cmp"
	"fmt"
	"log/slog"
	"net"
	"os"
	"sync"
	"time"
)

// Options are those of a Sim; the zero value works.
type Options struct {
	Socket  string       // Defaults to /run/vpp/api.sock.
	Release string       // such as "23.06". Defaults to the newest.
	Log     *slog.Logger // Defaults to discarding.
	// Hardware are the interfaces that VPP finds as it starts: "GigabitEthernet0/8/0".
	Hardware []string
	// Workers are the threads beside the main one.
	Workers uint32
	// Without names plugins that are not loaded, so that their messages are not there: "rdma".
	Without []string
	// TAP makes the Linux side of a TAP interface. Defaults to making none.
	TAP func(name string) (remove func(), err error)
}

// A Sim is a simulated VPP. Its methods may be called from any goroutine.
type Sim struct {
	o     Options
	table *table

	life sync.Mutex // guards what Start and Kill change
	sock net.Listener
	all  sync.WaitGroup // goroutines of this life

	mu      sync.Mutex // the main thread: guards the world and what follows
	world   *world
	ending  bool // being killed: no client is taken
	clients map[*client]bool
	last    uint32 // index of a client
	pid     uint32
	cut     cut
	faults  map[string]*Fault
	counts  map[string]int
	deaths  int
}

// A Fault is what goes wrong with a message.
type Fault struct {
	Skip   int           // so many are served first
	Times  int           // so many go wrong then. Defaults to all.
	Retval int32         // refused with this; nothing is done
	Delay  time.Duration // answered so much later, as are all that come behind
	Done   bool          // with Retval or Die: it is done all the same
	Die    bool          // VPP dies of it
	// With Die: VPP is started again at once, as by a supervisor.
	Respawn bool
	Mute    bool // never answered
}

// New returns a Sim that does nothing before Start. An unknown release is an error.
func New(o Options) (*Sim, error) {
	o.Socket = cmp.Or(o.Socket, "/run/vpp/api.sock")
	o.Log = cmp.Or(o.Log, slog.New(slog.DiscardHandler))
	o.Release = cmp.Or(o.Release, Releases()[len(Releases())-1])
	table, err := newTable(o.Release, o.Without)
	if err != nil {
		return nil, err
	}
	return &Sim{o: o, table: table, clients: map[*client]bool{}, pid: 4710, faults: map[string]*Fault{}, counts: map[string]int{}}, nil
}

// Start starts VPP, with nothing configured.
func (s *Sim) Start() error {
	s.life.Lock()
	defer s.life.Unlock()
	return s.start()
}

func (s *Sim) start() error {
	_ = os.Remove(s.o.Socket) // what a VPP that was killed has left
	sock, err := net.Listen("unix", s.o.Socket)
	if err != nil {
		return fmt.Errorf("simulated VPP: %w", err)
	}
	s.sock = sock
	s.mu.Lock()
	s.pid++
	s.ending = false
	s.world = newWorld(s)
	s.mu.Unlock()
	s.all.Go(func() { s.accept(sock) })
	return nil
}

// Kill ends VPP at once; what was configured is gone.
func (s *Sim) Kill() {
	s.life.Lock()
	defer s.life.Unlock()
	s.kill()
}

func (s *Sim) kill() {
	if s.sock == nil {
		return
	}
	s.mu.Lock()
	s.ending = true // a connection that is just being accepted is not kept
	s.mu.Unlock()
	s.sock.Close()
	s.Drop()
	s.all.Wait()
	s.sock = nil
}

// Restart is Kill and Start.
func (s *Sim) Restart() error {
	s.life.Lock()
	defer s.life.Unlock()
	s.kill()
	return s.start()
}

// Deaths is how often VPP has died of a message.
func (s *Sim) Deaths() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.deaths
}

// Drop closes all connections. What is configured stays.
func (s *Sim) Drop() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for c := range s.clients {
		c.close()
	}
}

// A cut is a connection that is to end.
type cut struct {
	after int  // so many messages; 0: none is to end
	done  bool // what the last of them asks for
}

// DropAt closes the connection by which the n-th message from now on comes, before it is
// served or, if done, after; none of what is not sent yet is answered. 0 ends that.
func (s *Sim) DropAt(n int, done bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.cut = cut{n, done}
}

// Hang has VPP stop where it is: connections stay, nothing is answered, until the
// function that is returned is called. Nothing else of s works meanwhile, but that.
func (s *Sim) Hang() (resume func()) {
	s.mu.Lock()
	return s.mu.Unlock
}

// Fail has messages of that name go wrong; the zero Fault ends it.
func (s *Sim) Fail(message string, f Fault) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if f == (Fault{}) {
		delete(s.faults, message)
		return
	}
	s.faults[message] = &f
}

// Counts is how many messages of each name have come since the last time.
func (s *Sim) Counts() map[string]int {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := s.counts
	s.counts = map[string]int{}
	return out
}

// Release is the release that s poses as.
func (s *Sim) Release() string { return s.o.Release }

func (s *Sim) accept(sock net.Listener) {
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

// die is Kill from within, with mu held: the process is gone before anything is answered.
func (s *Sim) die(respawn bool) {
	s.o.Log.Info("simulated VPP dies")
	s.deaths++
	for c := range s.clients {
		c.truncate(0)
		c.close()
	}
	dead := s.world
	go func() {
		s.life.Lock()
		defer s.life.Unlock()
		if s.world != dead { // somebody was faster
			return
		}
		if s.kill(); respawn {
			if err := s.start(); err != nil {
				s.o.Log.Error("simulated VPP does not start again", "err", err)
			}
		}
	}()
}
