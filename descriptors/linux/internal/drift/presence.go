package drift

import (
	"io"
	"log/slog"
	"sync"

	"github.com/keyplane/keyplane/descriptors/linux/internal/kernel"
	"github.com/keyplane/keyplane/descriptors/linux/netns"
)

// presences announce the installation in network namespaces, once in each for all who need it.
type presences struct {
	installation string // "": nothing is announced
	log          *slog.Logger

	mu   sync.Mutex // guards the fields below
	open map[kernel.ID]*presence
}

// A presence is one announcement.
type presence struct {
	users  int
	closer io.Closer // nil: it failed
}

// announce announces the installation in a namespace until all who have called it there have
// called leave, each once.
func (p *presences) announce(space *netns.Space) (leave func()) {
	if p.installation == "" {
		return func() {}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	one := p.open[space.ID]
	if one == nil {
		closer, err := space.Announce(p.installation)
		if err != nil {
			p.log.Warn("cannot announce this agent in a network namespace; another agent with this label may remove its objects", "err", err)
			closer = nil
		}
		one = &presence{closer: closer}
		p.open[space.ID] = one
	}
	one.users++
	return func() { p.leave(space.ID, one) }
}

// leave ends an announcement that nobody needs any more.
func (p *presences) leave(ns kernel.ID, one *presence) {
	p.mu.Lock()
	defer p.mu.Unlock()
	one.users--
	if one.users > 0 {
		return
	}
	delete(p.open, ns)
	if one.closer != nil {
		one.closer.Close()
	}
}
