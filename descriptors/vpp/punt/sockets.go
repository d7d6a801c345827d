package punt

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"

	"go.fd.io/govpp/api"
	"go.fd.io/govpp/binapi/ip_types"
	vpppunt "go.fd.io/govpp/binapi/punt"
	"google.golang.org/protobuf/proto"

	"github.com/keyplane/keyplane/descriptors/vpp/conn"
	"github.com/keyplane/keyplane/internal/wake"
	"github.com/keyplane/keyplane/models"
	"github.com/keyplane/keyplane/proto/ligato/vpp/punt"
	"github.com/keyplane/keyplane/scheduler"
)

const (
	// headerVersion is that of the header before each packet (VPP punt_packet.h). VPP knows
	// no other one.
	headerVersion = 1
	// longestPath is the maximum length of a socket's path in bytes (unix(7)): with the byte
	// that ends it, 108.
	longestPath = 107
)

// checkPath checks the path of a program's socket.
func checkPath(f *models.Faults, path string) {
	switch {
	case path == "":
		f.Add("socket_path", "", "the path of the program's socket")
	case len(path) > longestPath:
		f.Add("socket_path", fmt.Sprint(len(path), " bytes"), "at most %d bytes", longestPath)
	case strings.ContainsRune(path, 0):
		f.Add("socket_path", path, "a path without NUL")
	}
}

// own is the path of VPP's own socket, as answers to registrations tell it.
type own struct {
	readers []*Sockets // complete before the scheduler runs

	mu   sync.Mutex // guards the fields below
	run  string     // of VPP, which has told it; empty: none
	path string
}

// learn stores the path.
func (o *own) learn(run string, path string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.run, o.path = run, path
}

// changed tells the readers that registrations come or go.
func (o *own) changed() {
	for _, r := range o.readers {
		r.Turned.Set()
	}
}

// known returns the path, if it was told in this run of VPP.
func (o *own) known(run string) (string, bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.path, o.run == run && run != ""
}

// register makes a program's socket receive packets, or replaces the socket that does. An
// answer has the path of VPP's own socket, also a refusal.
func (h *handler) register(ctx context.Context, of vpppunt.Punt, path string) error {
	run, reply := h.Run(), &vpppunt.PuntSocketRegisterReply{}
	err := h.API.Call(ctx, &vpppunt.PuntSocketRegister{HeaderVersion: headerVersion, Punt: of, Pathname: path}, reply)
	switch {
	case err == nil:
		h.own.learn(run, reply.Pathname)
		h.own.changed()
	case errors.Is(err, api.UNSPECIFIED) && reply.Pathname == "":
		return fmt.Errorf("%w: %w", ErrNotConfigured, err)
	case errors.Is(err, api.UNSPECIFIED) && reply.Pathname == path:
		return fmt.Errorf("socket_path is VPP's own socket, %s: %w", path, err)
	}
	return err
}

// deregister ends a registration. There need not be one. A VPP without a socket has none.
func (h *handler) deregister(ctx context.Context, of vpppunt.Punt) error {
	err := h.API.Call(ctx, &vpppunt.PuntSocketDeregister{Punt: of}, &vpppunt.PuntSocketDeregisterReply{})
	h.own.changed()
	if errors.Is(err, api.UNSPECIFIED) {
		return nil
	}
	return err
}

// registered returns the registrations of one type.
func (h *handler) registered(ctx context.Context, of vpppunt.PuntType) ([]vpppunt.PuntSocketDetails, error) {
	all, err := conn.Dump[vpppunt.PuntSocketDetails](ctx, h.API, &vpppunt.PuntSocketDump{Type: of})
	if len(all) > 0 {
		h.own.changed()
	}
	return all, err
}

// ownPath returns the path of VPP's own socket. If no registration has told it in this
// run of VPP, it is asked for one with a wrong header: it refuses that, and tells the path.
func (h *handler) ownPath(ctx context.Context) (string, error) {
	run := h.Run()
	if path, known := h.own.known(run); known {
		return path, nil
	}
	reply := &vpppunt.PuntSocketRegisterReply{}
	of := vpppunt.Punt{Type: vpppunt.PUNT_API_TYPE_L4, Punt: vpppunt.PuntUnionL4(vpppunt.PuntL4{Protocol: ip_types.IP_API_PROTO_UDP, Port: 1})}
	err := h.API.Call(ctx, &vpppunt.PuntSocketRegister{HeaderVersion: headerVersion - 1, Punt: of}, reply)
	if err != nil && !errors.Is(err, api.UNSPECIFIED) {
		return "", err
	}
	h.own.learn(run, reply.Pathname)
	return reply.Pathname, nil
}

// Sockets tells programs where VPP's own socket is. One goroutine owns it.
type Sockets struct {
	// Turned holds a token when registrations were read, or have changed, since it was last
	// taken. Their states in the scheduler may follow a moment later.
	Turned wake.Signal
	h      *handler
	sched  *scheduler.Scheduler
}

// Read returns the values that are registered, by key below config/vpp/v2/, with the path of
// VPP's own socket in place of the program's. While VPP is not connected there are none.
func (s *Sockets) Read(ctx context.Context) (map[string]proto.Message, error) {
	out := map[string]proto.Message{}
	host, exception := models.For[*punt.ToHost]().Prefix(), models.For[*punt.Exception]().Prefix()
	for status := range s.sched.All() {
		is := strings.HasPrefix(status.Key, host) || strings.HasPrefix(status.Key, exception)
		if !is || status.State != scheduler.Configured {
			continue
		}
		path, err := s.h.ownPath(ctx)
		if errors.Is(err, conn.ErrLost) {
			return nil, nil
		}
		if err != nil {
			return nil, err
		}
		key := strings.TrimPrefix(status.Key, configPrefix)
		switch v := proto.Clone(status.Actual).(type) {
		case *punt.ToHost:
			v.SocketPath, out[key] = path, v
		case *punt.Exception:
			v.SocketPath, out[key] = path, v
		}
	}
	return out, nil
}

// configPrefix begins the keys of all punt items.
const configPrefix = "config/vpp/v2/"
