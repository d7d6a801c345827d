package core

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"go.fd.io/govpp/api"
	vppif "go.fd.io/govpp/binapi/interface"
)

// A VPP is one life of the process, with the state that plugins share. The Server's main
// thread owns it: only functions that a plugin has registered, and Server.Do, may use it.
type VPP struct {
	Options Options

	server     *Server
	pid        uint32
	asking     *Client // the client whose request is served now
	plugins    []Plugin
	messages   []Message
	pages      map[string]func() string
	commands   map[string]func(words []string) (string, Errno)
	interfaces interfaces
	counted    counted
}

// A Plugin is the registration of one plugin. Fields that are nil do nothing.
type Plugin struct {
	Messages []Message
	// Pages are the outputs of the command line by command, for example "show l2fib". They
	// are written for tests and do not copy the real VPP's format.
	Pages map[string]func() string
	// Commands are functions of the command line that take arguments, by the words that they
	// begin with, for example "sr localsid". They get the words behind these. They return an
	// output and the return value of cli_inband: UNSPECIFIED for a command that fails.
	Commands map[string]func(words []string) (string, Errno)

	// Flags runs after the administrative state or the link of an interface has changed.
	Flags func(i *Interface)
	// Removing runs while an interface is being deleted. The interface is still in the table.
	Removing func(i *Interface)
	// Ended runs when the process has ended, and the kernel closes what it has open.
	Ended func()
	// Removed runs after an interface has been deleted.
	Removed func()
	// Details adds to an interface's details in a dump.
	Details func(i *Interface, d *vppif.SwInterfaceDetails)
}

// newVPP returns a VPP with local0, the interface that every VPP has, and all plugins.
func newVPP(s *Server) *VPP {
	vpp := &VPP{Options: s.o, server: s, pid: s.pid, pages: map[string]func() string{}, commands: map[string]func([]string) (string, Errno){}, interfaces: newInterfaces()}
	vpp.counted.interfaces = map[uint32]map[string]Count{}
	vpp.Add(&Interface{Name: "local0", DevType: "local"})
	vpp.Register(general(vpp))
	s.plugins(vpp)
	return vpp
}

// Register adds a plugin. The hooks of plugins run in the order of registration.
func (v *VPP) Register(p Plugin) {
	v.plugins = append(v.plugins, p)
	v.messages = append(v.messages, p.Messages...)
	maps.Copy(v.pages, p.Pages)
	maps.Copy(v.commands, p.Commands)
}

// Before returns whether the server poses as a release older than the given one.
func (v *VPP) Before(release string) bool { return before(v.Options.Release, release) }

// before returns whether a release is older than another one.
func before(release, other string) bool {
	return slices.Index(Releases(), release) < slices.Index(Releases(), other)
}

// Asking returns the client whose request is served now.
func (v *VPP) Asking() *Client { return v.asking }

// Tell sends an event to one client, unless the client has left.
func (v *VPP) Tell(c *Client, event api.Message) {
	if !v.server.clients[c] {
		return
	}
	c.events = append(c.events, event)
	c.sendEvents()
	c.flush()
}

// Emit sends an event to the clients that asked for it by Want; build makes the message
// for a client's pid. The client whose request causes the event gets it after the answers
// to its pipelined requests. A mute Fault of "NAME events" loses it.
func (v *VPP) Emit(name string, build func(pid uint32) api.Message) {
	if f := v.server.faults[name+" events"]; f != nil && f.Mute {
		return
	}
	for c := range v.server.clients {
		pid, wants := c.wanted[name]
		if !wants {
			continue
		}
		c.events = append(c.events, build(pid))
		if c != v.asking {
			c.sendEvents()
			c.flush()
		}
	}
}

// Want registers the asking client for an event, or ends that. VPP refuses to do either
// twice with INVALID_REGISTRATION, also for another pid.
func (v *VPP) Want(name string, enable bool, pid uint32) Errno {
	if _, wants := v.asking.wanted[name]; wants == enable {
		return api.INVALID_REGISTRATION
	}
	if enable {
		v.asking.wanted[name] = pid
	} else {
		delete(v.asking.wanted, name)
	}
	return OK
}

// run runs a command line: a command with arguments, or a page.
func (v *VPP) run(command string) (string, Errno) {
	for begin, run := range v.commands {
		if rest, is := strings.CutPrefix(command, begin+" "); is {
			return run(strings.Fields(rest))
		}
	}
	return v.show(command), OK
}

// show returns a page, or the list of all pages for an unknown command.
func (v *VPP) show(command string) string {
	if page := v.pages[command]; page != nil {
		return page()
	}
	known := strings.Join(slices.Sorted(maps.Keys(v.pages)), ", ")
	return fmt.Sprintf("simulated VPP: no command %q; expected one of %s\n", command, known)
}
