package iptables

import (
	"maps"
	"slices"
	"strings"
)

// A listing is the content of the tables of one IP version, by table and chain.
type listing map[string]map[string]*chain

// A chain is a chain as the kernel shows it.
type chain struct {
	policy string // "ACCEPT", "DROP"; "" if the chain is not built in
	rules  []string
}

// parse parses the output of iptables-save. It skips lines that it does not know, such as the
// comments in which iptables-nft-save names tables that iptables cannot show.
func parse(text string) listing {
	out := listing{}
	var chains map[string]*chain
	for one := range strings.Lines(text) {
		one = strings.TrimRight(one, "\n")
		switch {
		case strings.HasPrefix(one, "*"):
			chains = map[string]*chain{}
			out[one[1:]] = chains
		case chains == nil:
		case strings.HasPrefix(one, ":"):
			// :INPUT ACCEPT [packets:bytes], or :mine - [packets:bytes]
			if fields := strings.Fields(one[1:]); len(fields) >= 2 {
				chains[fields[0]] = &chain{policy: strings.Trim(fields[1], "-")}
			}
		case strings.HasPrefix(one, "-A "):
			name, rule, _ := strings.Cut(one[3:], " ")
			if c := chains[name]; c != nil {
				c.rules = append(c.rules, rule)
			}
		}
	}
	return out
}

// A mine is a chain with the agent's mark. The agent may be this one or another; handler.ours
// decides.
type mine struct {
	mark
	table  table
	chain  string
	rules  []string // without the mark
	at     int      // place of the mark among the rules
	jumps  []jump
	actual string // policy of the built-in chain now; "" without one
}

// A jump is a rule of the agent that leads to one of its chains.
type jump struct {
	from string // the built-in chain
	rule string
}

// marked returns the chains with a mark of any agent, sorted by table and name.
func (l listing) marked(ipv6 bool) (out []mine) {
	for _, name := range slices.Sorted(maps.Keys(l)) {
		jumps := l.jumps(name)
		for _, chain := range slices.Sorted(maps.Keys(l[name])) {
			if m, ok := l.mine(table{ipv6, name}, chain, jumps); ok {
				out = append(out, m)
			}
		}
	}
	return out
}

// jumps returns the jumps that an agent has written into the built-in chains of a table, by
// their target.
func (l listing) jumps(table string) map[string][]jump {
	out := map[string][]jump{}
	for _, from := range slices.Sorted(maps.Keys(l[table])) {
		if !isBuiltIn(from) {
			continue
		}
		for _, rule := range l[table][from].rules {
			if to, ok := ownJump(rule); ok {
				out[to] = append(out[to], jump{from, rule})
			}
		}
	}
	return out
}

// mine returns a chain, and whether it has a mark.
func (l listing) mine(t table, name string, jumps map[string][]jump) (m mine, marked bool) {
	c := l[t.name][name]
	m = mine{table: t, chain: name, rules: c.rules, jumps: jumps[name]}
	if m.mark, m.at, marked = c.mark(); marked {
		m.rules = slices.Delete(slices.Clone(c.rules), m.at, m.at+1)
	}
	if at := l[t.name][m.in]; at != nil {
		m.actual = at.policy
	}
	return m, marked
}

// find returns the chain with that name. there: it exists. A chain that exists without a mark
// belongs to another program.
func (l listing) find(t table, name string) (m mine, marked, there bool) {
	if l[t.name][name] == nil {
		return mine{}, false, false
	}
	m, marked = l.mine(t, name, l.jumps(t.name))
	return m, marked, true
}

// mark returns the mark of a chain and its place among the rules. It is the first, unless
// another program has inserted rules before it.
func (c *chain) mark() (m mark, at int, ok bool) {
	for i, rule := range c.rules {
		if !strings.Contains(rule, agentMark) {
			continue // most rules; the check below is slower
		}
		if comment, rest, ok := commentOf(rule); ok && len(rest) == 0 {
			if m, ok := parseMark(comment); ok {
				return m, i, true
			}
		}
	}
	return mark{}, 0, false
}

// ownJump returns the target of a rule that an agent has written into a built-in chain.
func ownJump(rule string) (to string, ok bool) {
	if !strings.Contains(rule, agentMark) {
		return "", false // most rules; the check below is slower
	}
	comment, rest, ok := commentOf(rule)
	if !ok || !strings.HasPrefix(comment, agentMark) || len(rest) != 2 || rest[0] != "-j" {
		return "", false
	}
	return rest[1], true
}

// intact reports whether the rules are those that the agent has written. Without a seal, that is known if
// this process has just written them. The kernel may list a rule as several, such as one with a list of
// addresses, so another number does not say that they are not intact, unless there are too few.
func (m mine) intact(written bool) bool {
	if m.at != 0 {
		return false
	}
	if m.kernel == "" {
		return len(m.rules) == m.mark.rules || written && len(m.rules) > m.mark.rules
	}
	return m.kernel == digest(m.rules)
}

// entered reports whether exactly one jump leads from the built-in chain to m, or none if it is
// a custom chain.
func (m mine) entered(from string) bool {
	if from == "" {
		return len(m.jumps) == 0
	}
	return len(m.jumps) == 1 && m.jumps[0].from == from
}
