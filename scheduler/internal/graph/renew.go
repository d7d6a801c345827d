package graph

import (
	"slices"

	"github.com/keyplane/keyplane/scheduler/internal/value"
)

// renew has the provider of n deleted and created again, with all that depends on it, if err says that n needs
// that. It does so once, until n exists, gets a new desired value, or is tried again: so the back-off of the retries
// also bounds how often a provider is created again that is of no use for n either.
func (g *Graph) renew(n *Node, err error) {
	provider := g.Node(value.Renews(err))
	if provider == nil || g.renewed[n] || n.desired == nil || n.actual != nil || provider.foreign || !provider.available() || provider.running != idle {
		return
	}
	provides := func(e edge) bool { return e.to == provider && e.met && !e.assumed && e.dep != nil }
	if !slices.ContainsFunc(n.desired.edges(), provides) {
		return
	}
	g.setRenewed(n, true)
	doubtful := *provider.actual.Value
	doubtful.Doubt = true
	g.setActual(provider, g.newVersion(provider, &doubtful), provider.meta)
}

// setRenewed notes whether the provider of n was created again for its sake. A plan does not: its operations succeed.
func (g *Graph) setRenewed(n *Node, renewed bool) {
	switch {
	case g.planning():
	case !renewed:
		delete(g.renewed, n)
	default:
		g.renewed[n] = true
	}
}
