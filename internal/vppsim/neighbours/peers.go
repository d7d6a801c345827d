package neighbours

import (
	"go.fd.io/govpp/api"
	"go.fd.io/govpp/binapi/teib"

	"github.com/keyplane/keyplane/internal/vppsim/core"
	"github.com/keyplane/keyplane/internal/vppwire"
)

// peerMessages registers the messages of TEIB entries.
func (p *plugin) peerMessages() {
	p.vpp.Register(core.Plugin{
		Messages: []core.Message{
			core.On(p.vpp, func(q *teib.TeibEntryAddDel) index { return q.Entry.SwIfIndex }, p.changePeer),
			core.Dump(func(_ *teib.TeibDump, yield func(teib.TeibDetails)) {
				for _, e := range p.peers {
					yield(teib.TeibDetails{Entry: e})
				}
			}),
		},
		Pages: map[string]func() string{"show teib": p.showPeers},
	})
}

// changePeer adds or deletes the next hop of a tunnel's peer. An existing entry cannot be
// changed, not even to the same next hop. A delete ignores the next hop, but its table
// must exist.
func (p *plugin) changePeer(i *core.Interface, q *teib.TeibEntryAddDel, _ *teib.TeibEntryAddDelReply) core.Errno {
	key := key{i.Index, vppwire.Addr(q.Entry.Peer)}
	add := q.IsAdd != 0
	_, has := p.peers[key]
	switch {
	case !p.tables.HasTable(vppwire.Addr(q.Entry.Nh).Is6(), q.Entry.NhTableID):
		return api.NO_SUCH_FIB
	case !add && !has:
		return api.NO_SUCH_ENTRY
	case add != has && p.besideDead(key):
		return core.Crash
	case !add:
		delete(p.peers, key)
		return core.OK
	case has:
		return api.ENTRY_ALREADY_EXISTS
	}
	p.peers[key] = q.Entry
	return core.OK
}
