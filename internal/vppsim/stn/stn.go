// Package stn simulates VPP's plugin for sharing an address with the host. A rule is identified by its address; its
// interface is not checked, and the rule stays when that is deleted.
package stn

import (
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"

	"go.fd.io/govpp/api"
	"go.fd.io/govpp/binapi/stn"

	"github.com/keyplane/keyplane/internal/vppsim/core"
	"github.com/keyplane/keyplane/internal/vppwire"
)

type plugin struct {
	vpp   *core.VPP
	rules map[netip.Addr]stn.StnRulesDetails
}

// New adds the plugin.
func New(vpp *core.VPP) {
	p := &plugin{vpp, map[netip.Addr]stn.StnRulesDetails{}}
	vpp.Register(core.Plugin{
		Messages: []core.Message{core.Call(p.set), core.Dump(p.dump)},
		Pages:    map[string]func() string{"show stn rules": p.show},
	})
}

// set adds a rule, gives an existing one another interface, or removes one.
func (p *plugin) set(q *stn.StnAddDelRule, _ *stn.StnAddDelRuleReply) core.Errno {
	address := vppwire.Addr(q.IPAddress)
	if q.IsAdd {
		p.rules[address] = stn.StnRulesDetails{IPAddress: q.IPAddress, SwIfIndex: q.SwIfIndex}
		return core.OK
	}
	if _, has := p.rules[address]; !has {
		return api.NO_SUCH_ENTRY
	}
	delete(p.rules, address)
	return core.OK
}

func (p *plugin) dump(_ *stn.StnRulesDump, yield func(stn.StnRulesDetails)) {
	for _, address := range p.sorted() {
		yield(p.rules[address])
	}
}

func (p *plugin) sorted() []netip.Addr {
	return slices.SortedFunc(maps.Keys(p.rules), netip.Addr.Compare)
}

func (p *plugin) show() string {
	var b strings.Builder
	for _, address := range p.sorted() {
		fmt.Fprintf(&b, "%s %s\n", address, p.vpp.NameOf(uint32(p.rules[address].SwIfIndex)))
	}
	return b.String()
}
