// Package punt implements VPP's punting: packets that VPP does not handle itself go to the
// socket of a program on the host, or leave by an interface.
//
//	sockets, err := punt.Register(s, punt.Options{API: manager, Interfaces: links, ...})
//
// There are three kinds: packets to a UDP port (to host), packets that VPP has given up for
// a reason (exceptions), and all other packets for the host (IP redirect).
//
// VPP sends packets to the program's socket, and the program sends packets to VPP's socket,
// whose path is in VPP's start-up configuration. [Sockets] tells that path to programs.
//
// VPP has one registration per UDP port and IP version, and one redirection per incoming
// interface and IP version. So values claim these. A value for ALL IP versions is two
// registrations in VPP. VPP knows no owner: one that nobody declares is left alone, unless
// the agent remembers having made it.
//
//	file         | subject
//	punt.go      | descriptors
//	versions.go  | values for one IP version, and for both
//	sockets.go   | registration of sockets, and VPP's own one
//	host.go      | to host
//	exception.go | exceptions
//	redirect.go  | IP redirect
//
// Tests run against a simulated VPP, which is itself tested against a real one.
package punt

import (
	"errors"

	"github.com/keyplane/keyplane/descriptors/vpp/conn"
	"github.com/keyplane/keyplane/descriptors/vpp/iface"
	"github.com/keyplane/keyplane/internal/wake"
	"github.com/keyplane/keyplane/scheduler"
)

// Names of the descriptors, as logs, REST and RetrieveAfter use them.
const (
	HostName      = "vpp-punt-to-host"
	ExceptionName = "vpp-punt-exception"
	RedirectName  = "vpp-punt-ipredirect"
)

var (
	// ErrNotConfigured reports that VPP has no socket of its own.
	ErrNotConfigured = errors.New("VPP takes no sockets: its start-up configuration has no punt { socket PATH }")
)

// Options configure the descriptors. All fields are required.
type Options struct {
	API        conn.API
	Interfaces iface.Index
	// Run identifies the run of VPP that is connected now, or was last. It is empty before the first connection.
	Run        func() string
	Connection string
}

// handler implements the verbs. The scheduler calls verbs of different values concurrently.
type handler struct {
	Options
	own own
}

// Register adds the descriptors to s. The caller registers interfaces first. sockets returns a
// reader of the registrations, and is called before s runs.
func Register(s *scheduler.Scheduler, o Options) (sockets func() *Sockets, err error) {
	h := &handler{Options: o}
	registrar := s.OnConnection(o.Connection)
	_, errHost := scheduler.Register(registrar, h.hostDescriptor())
	_, errException := scheduler.Register(registrar, h.exceptionDescriptor())
	_, errRedirect := scheduler.Register(registrar, h.redirectDescriptor())
	return func() *Sockets {
		r := &Sockets{wake.New(), h, s}
		h.own.readers = append(h.own.readers, r)
		return r
	}, errors.Join(errHost, errException, errRedirect)
}
