package neighbours

import (
	"slices"

	"go.fd.io/govpp/api"
	"go.fd.io/govpp/binapi/arp"

	"github.com/keyplane/keyplane/internal/vppsim/core"
)

// proxyMessages registers the messages of proxy ARP.
func (p *plugin) proxyMessages() {
	p.vpp.Register(core.Plugin{
		Messages: []core.Message{
			core.Call(p.changeRange),
			core.Dump(func(_ *arp.ProxyArpDump, yield func(arp.ProxyArpDetails)) {
				for _, r := range p.proxyRanges {
					yield(arp.ProxyArpDetails{Proxy: r})
				}
			}),
			core.On(p.vpp, func(q *arp.ProxyArpIntfcEnableDisable) index { return q.SwIfIndex }, p.setProxying),
			core.Dump(func(_ *arp.ProxyArpIntfcDump, yield func(arp.ProxyArpIntfcDetails)) {
				for one := range p.proxying {
					yield(arp.ProxyArpIntfcDetails{SwIfIndex: one})
				}
			}),
		},
		Pages: map[string]func() string{"show arp proxy": p.showProxies},
	})
}

// changeRange adds or deletes a range of addresses. Ranges may overlap, and VPP accepts a
// lower end above the upper one. Adding a range twice makes one range. A delete must name
// exactly the range.
func (p *plugin) changeRange(q *arp.ProxyArpAddDel, _ *arp.ProxyArpAddDelReply) core.Errno {
	if !p.tables.HasTable(false, q.Proxy.TableID) {
		return api.NO_SUCH_FIB
	}
	at := slices.Index(p.proxyRanges, q.Proxy)
	switch {
	case !q.IsAdd && at < 0:
		return api.NO_SUCH_ENTRY
	case !q.IsAdd:
		p.proxyRanges = slices.Delete(p.proxyRanges, at, at+1)
	case at < 0:
		p.proxyRanges = append(p.proxyRanges, q.Proxy)
	}
	return core.OK
}

// setProxying succeeds if nothing changes.
func (p *plugin) setProxying(i *core.Interface, q *arp.ProxyArpIntfcEnableDisable, _ *arp.ProxyArpIntfcEnableDisableReply) core.Errno {
	delete(p.proxying, i.Index)
	if q.Enable {
		p.proxying[i.Index] = true
	}
	return core.OK
}
