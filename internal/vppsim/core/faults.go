package core

import (
	"slices"
	"strings"
	"time"

	"go.fd.io/govpp/binapi/memclnt"
)

// Deaths returns the number of times that a message has ended the process.
func (s *Server) Deaths() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.deaths
}

// Drop closes all connections. The configuration stays.
func (s *Server) Drop() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for c := range s.clients {
		c.close()
	}
}

// A cut ends the connection that sends a certain message, or the process.
type cut struct {
	after int  // messages until then; 0: there is no cut
	done  bool // the last message takes effect
	die   bool // the process ends
}

// DropAt closes a connection at the n-th message from now on, which is lost unless done is
// set. Answers that are not sent yet are lost too. An n of 0 ends the fault.
func (s *Server) DropAt(n int, done bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.cut = cut{after: n, done: done}
}

// DieAt ends the process at the n-th message from now on, as DropAt closes a connection.
// Restart starts it again.
func (s *Server) DieAt(n int, done bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.cut = cut{after: n, done: done, die: true}
}

// Hang stops VPP's main thread until resume is called: connections stay open, and no
// answer comes. Other methods of s wait for resume.
func (s *Server) Hang() (resume func()) {
	s.mu.Lock()
	return s.mu.Unlock
}

// Fail makes the messages of a name fail; the zero Fault ends that.
func (s *Server) Fail(message string, f Fault) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if f == (Fault{}) {
		delete(s.faults, message)
		return
	}
	s.faults[message] = &f
}

// Redefine has clients that connect from now on see another definition of these messages, as a release
// that has changed them. So they cannot use them. Without names, that ends.
func (s *Server) Redefine(names ...string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.strange = map[string]bool{}
	for _, name := range names {
		s.strange[name] = true
	}
}

// shownTable returns the table that a new client gets.
func (s *Server) shownTable() []memclnt.MessageTableEntry {
	out := slices.Clone(s.table.entries)
	for i := range out {
		name := out[i].Name[:strings.LastIndexByte(out[i].Name, '_')]
		if s.strange[name] {
			out[i].Name = name + "_00000000"
		}
	}
	return out
}

// die ends the process before it answers, as Kill does. The caller holds mu.
func (s *Server) die(respawn bool) {
	s.o.Log.Info("simulated VPP dies")
	s.deaths++
	for c := range s.clients {
		c.truncate(0)
		c.close()
	}
	go s.bury(s.vpp, respawn)
}

// bury completes die without mu. Somebody else may have killed or restarted the process in
// the meantime.
func (s *Server) bury(dead *VPP, respawn bool) {
	s.life.Lock()
	defer s.life.Unlock()
	if s.vpp != dead {
		return
	}
	s.kill()
	if !respawn {
		return
	}
	if err := s.start(); err != nil {
		s.o.Log.Error("simulated VPP does not start again", "err", err)
	}
}

// isCut ends the connection if DropAt asks for that at this message.
func (c *Client) isCut(e *entry, message []byte) bool {
	cut := &c.server.cut
	if cut.after == 0 {
		return false
	}
	cut.after--
	if cut.after > 0 {
		return false
	}
	if cut.done {
		e.serve(c, message)
	}
	if cut.die {
		c.server.die(false)
		return true
	}
	c.truncate(0)
	c.close()
	return true
}

// fails applies the fault of a message. It returns false if the message is to be served
// normally now.
func (c *Client) fails(e *entry, message []byte) bool {
	f := c.server.faults[e.name]
	if f == nil {
		return false
	}
	if f.Skip > 0 {
		f.Skip--
		return false
	}
	if f.Times > 0 {
		f.Times--
		if f.Times == 0 {
			delete(c.server.faults, e.name)
		}
	}
	<-time.After(f.Delay) // all messages behind this one wait too
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
		c.server.die(f.Respawn)
	case f.Retval != 0:
		e.refuse(c, message, f.Retval)
	}
	return true
}
