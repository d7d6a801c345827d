package agent

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/keyplane/keyplane/descriptors/vpp"
	"github.com/keyplane/keyplane/models"
	"github.com/keyplane/keyplane/orchestrator/publish"
	"github.com/keyplane/keyplane/scheduler"
)

// publishing selects the stores for status, and limits the writes per second into each.
type publishing struct {
	// all, from the command line, selects every store that can be written. Otherwise stores
	// names them. rate is the maximum number of writes per second into one store.
	all    bool
	stores []string
	rate   int
}

// interfaceStates is the prefix of the states of VPP interfaces, below the agent's root.
const interfaceStates = "vpp/status/v2/interface/"

// watchers returns a task for each store that receives the states of VPP interfaces.
func (s stores) watchers(root string, names []string, plane *vpp.Plugin, log *slog.Logger) (out []Task) {
	if plane == nil {
		return nil
	}
	for _, name := range names {
		at := slices.IndexFunc(s, func(one store) bool { return one.name == name })
		if at < 0 {
			log.Warn("cannot publish states of interfaces: the store is not configured", "source", name)
			continue
		}
		into := s[at].publisher
		if into == nil {
			log.Warn("cannot publish states of interfaces: the store does not support it", "source", name)
			continue
		}
		states := plane.States()
		out = append(out, Task{"interface states into " + name, publish.Table{
			Options: publish.Options{Name: name, Store: into, Root: root, Listed: s[at].listed.Join().C(), Log: log},
			Below:   interfaceStates, Changed: states.Turned.C(),
			Read: func(ctx context.Context) (map[string][]byte, error) { return texts(states.Read(ctx)) },
		}.Run})
	}
	return out
}

// puntSockets is the prefix of the registrations of programs' sockets, below the agent's root.
const puntSockets = "status/vpp/v2/"

// registrars returns a task for each store, which tells programs to which socket of VPP they
// send packets. It does not use the store before VPP has a registration.
func (s stores) registrars(root string, plane *vpp.Plugin, log *slog.Logger) (out []Task) {
	if plane == nil {
		return nil
	}
	for _, one := range s {
		into := one.publisher
		if into == nil {
			continue
		}
		sockets := plane.Sockets()
		table := publish.Table{
			Options: publish.Options{Name: one.name, Store: into, Root: root, Period: socketsPeriod, Listed: one.listed.Join().C(), Log: log},
			Below:   puntSockets, Changed: sockets.Turned.C(),
			Read: func(ctx context.Context) (map[string][]byte, error) { return texts(sockets.Read(ctx)) },
		}
		out = append(out, Task{"punt sockets into " + one.name, func(ctx context.Context) error {
			select {
			case <-sockets.Turned.C():
				return table.Run(ctx)
			case <-ctx.Done():
				return nil
			}
		}})
	}
	return out
}

// socketsPeriod is how often the states of registrations are read from the scheduler. A state
// follows the registration a moment later.
const socketsPeriod = 2 * time.Second

// texts converts messages to the JSON that stores hold.
func texts[V proto.Message](all map[string]V, err error) (map[string][]byte, error) {
	out := make(map[string][]byte, len(all))
	for key, v := range all {
		text, wrong := models.JSON(v)
		out[key], err = text, errors.Join(err, wrong)
	}
	return out, err
}

// publishers returns a task for each store that receives status.
func (s stores) publishers(root string, p publishing, sched *scheduler.Scheduler, log *slog.Logger) (out []Task) {
	for _, one := range s {
		into, able := one.publisher, one.publisher != nil
		switch named := slices.Contains(p.stores, one.name); {
		case able && (named || p.all):
			out = append(out, Task{"status into " + one.name, publish.New(sched, publish.Options{
				Name: one.name, Store: into, Root: root, BatchInterval: time.Second / time.Duration(p.rate),
				Listed: one.listed.Join().C(), Log: log,
			}).Run})
		case named:
			log.Warn("cannot publish status: the store does not support it", "source", one.name)
		}
	}
	for _, name := range p.stores {
		if !slices.Contains(s.names(), name) {
			log.Warn("cannot publish status: the store is not configured", "source", name)
		}
	}
	return out
}
