package iptables

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/google/nftables"
	"github.com/google/nftables/expr"
	"github.com/google/nftables/userdata"
	"github.com/mdlayher/netlink"

	"github.com/keyplane/keyplane/descriptors/linux/iptables/internal/ruletext"
	"github.com/keyplane/keyplane/descriptors/linux/netns"
)

// netfilter is the backend for hosts without iptables: it writes the rules as nftables rules,
// through netlink. It knows the most common matches and targets; see translate.go.
//
// The chains are in tables of their own, since iptables, if somebody installs it later, refuses
// tables with rules that it has not written. Hooks and priorities are those of iptables, so
// packets meet the rules in the same order. The text of a rule is in its comment, which "nft list
// ruleset" shows; the fingerprint of a chain is that of these texts. A comment cannot be changed
// without replacing its rule.
type netfilter struct{}

// nftPrefix begins the names of the tables: keyplane-filter.
const nftPrefix = "keyplane-"

// socketRoom is the size of the socket's buffers, in bytes: a batch is one message.
const socketRoom = 64 << 20

// longestText is the length of the longest text in a comment of nftables, in bytes. The comment of
// a longer rule has only its fingerprint, which is enough to notice a change.
const longestText = 250

// dial opens a connection to the packet filter of a namespace. The socket stays in that
// namespace. The caller closes it with CloseLasting.
func dial(space *netns.Space) (conn *nftables.Conn, err error) {
	buffers := func(c *netlink.Conn) error {
		// Without CAP_NET_ADMIN the system's limits apply; then a large batch fails.
		return errors.Join(c.SetWriteBuffer(socketRoom), c.SetReadBuffer(socketRoom))
	}
	err = space.Within(func() (err error) {
		conn, err = nftables.New(nftables.AsLasting(), nftables.WithSockOptions(buffers))
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("nftables: %w", err)
	}
	return conn, nil
}

// family returns the family of an IP version.
func family(ipv6 bool) nftables.TableFamily {
	if ipv6 {
		return nftables.TableFamilyIPv6
	}
	return nftables.TableFamilyIPv4
}

// read implements backend.
func (netfilter) read(_ context.Context, space *netns.Space, ipv6 bool) (listing, error) {
	has, err := space.HasRules()
	if err != nil || !has {
		return listing{}, err
	}
	conn, err := dial(space)
	if err != nil {
		return nil, err
	}
	defer conn.CloseLasting() //nolint:errcheck // a socket for reading
	state, err := readState(conn, ipv6)
	if err != nil {
		return nil, err
	}
	out := listing{}
	for at, c := range state {
		if out[at.table.name] == nil {
			out[at.table.name] = map[string]*chain{}
		}
		one := &chain{}
		for _, r := range c.rules {
			one.rules = append(one.rules, r.text)
		}
		if c.Hooknum != nil {
			one.policy = "ACCEPT"
			if c.Policy != nil && *c.Policy == nftables.ChainPolicyDrop {
				one.policy = "DROP"
			}
		}
		out[at.table.name][at.chain] = one
	}
	return out, nil
}

// An nftChain is a chain with its rules.
type nftChain struct {
	*nftables.Chain
	rules []nftRule
}

// An nftRule is a rule as iptables would spell it.
type nftRule struct {
	// The kernel's number of the rule within its table; DelRule and ReplaceRule need it.
	handle uint64
	text   string
}

// readState reads the chains in tables of the agent. Chains of other tables are skipped,
// including those of iptables-nft.
func readState(conn *nftables.Conn, ipv6 bool) (map[chainID]*nftChain, error) {
	chains, err := conn.ListChainsOfTableFamily(family(ipv6))
	if err != nil {
		return nil, fmt.Errorf("nftables: listing chains: %w", err)
	}
	out := map[chainID]*nftChain{}
	for _, c := range chains {
		name, ours := strings.CutPrefix(c.Table.Name, nftPrefix)
		if !ours {
			continue
		}
		c.Table.Family = family(ipv6)
		one := &nftChain{Chain: c}
		rules, err := conn.GetRules(c.Table, c)
		if err != nil {
			return nil, fmt.Errorf("nftables: listing rules: %w", err)
		}
		for _, r := range rules {
			one.rules = append(one.rules, nftRule{r.Handle, textOf(r)})
		}
		out[chainID{table{ipv6, name}, c.Name}] = one
	}
	return out, nil
}

// textOf returns the text of a rule. One without is of another program.
func textOf(r *nftables.Rule) string {
	text, ok := userdata.GetString(r.UserData, userdata.TypeComment)
	switch {
	case !ok:
		return fmt.Sprintf("(nft handle %d)", r.Handle)
	case strings.HasPrefix(text, agentMark):
		return ruletext.Join(commented(text)) // a mark has nothing else
	}
	return text
}

// comment returns the user data of a rule with this text. The error reports a mark that is too
// long; a mark must be complete to be read back.
func comment(text string) ([]byte, error) {
	if said, rest, ok := commentOf(text); ok && len(rest) == 0 && strings.HasPrefix(said, agentMark) {
		if len(said) > longestText {
			return nil, fmt.Errorf("the mark has %d bytes; expected at most %d: choose a shorter name", len(said), longestText)
		}
		return userdata.AppendString(nil, userdata.TypeComment, said), nil
	}
	if len(text) > longestText {
		text = "(fingerprint " + digest([]string{text}) + ")"
	}
	return userdata.AppendString(nil, userdata.TypeComment, text), nil
}

// apply implements backend. It does what iptables-restore does with the lines of a batch.
func (netfilter) apply(_ context.Context, space *netns.Space, b *batch) error {
	conn, err := dial(space)
	if err != nil {
		return err
	}
	defer conn.CloseLasting() //nolint:errcheck // Flush has reported the errors
	state, err := readState(conn, b.table.ipv6)
	if err != nil {
		return err
	}
	w := nftWriter{conn: conn, table: b.table, state: state}
	w.nft = conn.AddTable(&nftables.Table{Family: family(b.table.ipv6), Name: nftPrefix + b.table.name})
	w.translator = newTranslator(b.table.ipv6, w.set)
	for i, one := range b.lines {
		if err := w.apply(one); err != nil {
			return &batchError{i + 2, "nftables: " + err.Error()}
		}
	}
	if err := conn.Flush(); err != nil {
		return &batchError{0, "nftables: " + err.Error()}
	}
	return nil
}

// An nftWriter turns the lines of a batch into one message of nftables.
type nftWriter struct {
	conn  *nftables.Conn
	table table
	nft   *nftables.Table
	// the kernel's chains, with the changes by earlier lines of the batch
	state map[chainID]*nftChain

	translator *translator
}

var (
	errExists = errors.New("chain already exists")
	errNoRule = errors.New("no such rule")
)

// apply adds one line. It returns errExists or errNoRule as iptables-restore would fail, before
// the kernel is asked.
func (w nftWriter) apply(text string) error {
	if name, ok := strings.CutPrefix(text, ":"); ok {
		name, _, _ = strings.Cut(name, " ")
		if w.exists(name) {
			w.conn.FlushChain(w.chain(name))
		} else {
			w.create(name)
		}
		return nil
	}
	command, rest, _ := strings.Cut(text, " ")
	name, rule, _ := strings.Cut(rest, " ")
	switch command {
	case "-N":
		if w.exists(name) {
			return errExists
		}
		w.create(name)
	case "-F":
		w.conn.FlushChain(w.chain(name))
	case "-X":
		w.conn.DelChain(w.chain(name))
	case "-P":
		w.base(name, rule)
	case "-A":
		return w.append(name, rule)
	case "-D":
		return w.remove(name, rule)
	case "-R":
		return w.replaceFirst(name, strings.TrimPrefix(rule, "1 "))
	}
	return nil
}

// exists reports whether the kernel has a chain, or the batch creates it.
func (w nftWriter) exists(name string) bool { return w.state[chainID{w.table, name}] != nil }

// chain returns a chain by its name.
func (w nftWriter) chain(name string) *nftables.Chain {
	return &nftables.Chain{Name: name, Table: w.nft}
}

// create creates a chain that is not built in.
func (w nftWriter) create(name string) {
	w.conn.AddChain(w.chain(name))
	w.state[chainID{w.table, name}] = &nftChain{Chain: w.chain(name)}
}

// base creates a chain that iptables has built in, or sets its policy; "" leaves the policy.
func (w nftWriter) base(name, policy string) {
	c := w.chain(name)
	c.Hooknum, c.Priority, c.Type = hookOf(w.table.name, name)
	switch policy {
	case "DROP":
		drop := nftables.ChainPolicyDrop
		c.Policy = &drop
	case "ACCEPT":
		accept := nftables.ChainPolicyAccept
		c.Policy = &accept
	}
	w.conn.AddChain(c)
	if !w.exists(name) {
		w.state[chainID{w.table, name}] = &nftChain{Chain: c}
	}
}

// hookOf returns where packets meet a built-in chain, as iptables has it.
func hookOf(table, chain string) (*nftables.ChainHook, *nftables.ChainPriority, nftables.ChainType) {
	hooks := map[string]*nftables.ChainHook{
		"INPUT": nftables.ChainHookInput, "FORWARD": nftables.ChainHookForward, "OUTPUT": nftables.ChainHookOutput,
		"PREROUTING": nftables.ChainHookPrerouting, "POSTROUTING": nftables.ChainHookPostrouting,
	}
	priorities := map[string]*nftables.ChainPriority{
		"raw": nftables.ChainPriorityRaw, "mangle": nftables.ChainPriorityMangle, "filter": nftables.ChainPriorityFilter,
		"security": nftables.ChainPrioritySecurity, "nat": nftables.ChainPriorityNATDest,
	}
	priority, kind := priorities[table], nftables.ChainTypeFilter
	switch {
	case table == "nat":
		kind = nftables.ChainTypeNAT
		if chain == "POSTROUTING" || chain == "INPUT" {
			priority = nftables.ChainPriorityNATSource
		}
	case table == "mangle" && chain == "OUTPUT":
		kind = nftables.ChainTypeRoute // a changed mark leads to another route
	}
	return hooks[chain], priority, kind
}

// append adds a rule to the end of a chain.
func (w nftWriter) append(name, rule string) error {
	if isBuiltIn(name) && !w.exists(name) {
		w.base(name, "")
	}
	r, err := w.rule(name, rule)
	if err != nil {
		return err
	}
	w.conn.AddRule(r)
	return nil
}

// rule translates a rule.
func (w nftWriter) rule(name, text string) (*nftables.Rule, error) {
	all, err := ruletext.Split(text)
	if err != nil {
		return nil, err
	}
	exprs, err := w.translator.translate(all)
	if err != nil {
		return nil, err
	}
	data, err := comment(text)
	return &nftables.Rule{Table: w.nft, Chain: w.chain(name), Exprs: exprs, UserData: data}, err
}

// set adds an anonymous set of ports and returns a look-up of register 1 in it.
func (w nftWriter) set(ports [][]byte) (*expr.Lookup, error) {
	s := &nftables.Set{Table: w.nft, Anonymous: true, Constant: true, KeyType: nftables.TypeInetService}
	var elements []nftables.SetElement
	for _, port := range ports {
		elements = append(elements, nftables.SetElement{Key: port})
	}
	if err := w.conn.AddSet(s, elements); err != nil {
		return nil, err
	}
	return &expr.Lookup{SourceRegister: 1, SetName: s.Name, SetID: s.ID}, nil
}

// remove removes the rule with this text. Of several equal rules it removes the first. The rule
// also leaves the state, so that the next equal line finds the next one.
func (w nftWriter) remove(name, rule string) error {
	c := w.state[chainID{w.table, name}]
	if c == nil {
		return errNoRule
	}
	i := slices.IndexFunc(c.rules, func(r nftRule) bool { return r.text == rule })
	if i < 0 {
		return errNoRule
	}
	gone := c.rules[i]
	c.rules = slices.Delete(c.rules, i, i+1)
	return w.conn.DelRule(&nftables.Rule{Table: w.nft, Chain: w.chain(name), Handle: gone.handle})
}

// replaceFirst replaces the first rule of a chain.
func (w nftWriter) replaceFirst(name, rule string) error {
	c := w.state[chainID{w.table, name}]
	if c == nil || len(c.rules) == 0 {
		return errNoRule
	}
	r, err := w.rule(name, rule)
	if err != nil {
		return err
	}
	r.Handle = c.rules[0].handle
	w.conn.ReplaceRule(r)
	return nil
}
