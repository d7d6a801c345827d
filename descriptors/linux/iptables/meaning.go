package iptables

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"google.golang.org/protobuf/proto"

	"github.com/keyplane/keyplane/descriptors/linux/iptables/internal/ruletext"
	"github.com/keyplane/keyplane/descriptors/linux/netns"
	"github.com/keyplane/keyplane/internal/lists"
	"github.com/keyplane/keyplane/models"
	"github.com/keyplane/keyplane/proto/ligato/linux/interfaces"
	"github.com/keyplane/keyplane/proto/ligato/linux/iptables"
	"github.com/keyplane/keyplane/scheduler"
)

// normalize writes rules in their parsed form, and removes the name of a custom chain from a value for a built-in one.
func normalize(_ string, v *iptables.RuleChain) (*iptables.RuleChain, []string) {
	rules := normalRules(v.GetRules())
	named := v.GetChainName() != "" && v.GetChainType() != iptables.RuleChain_CUSTOM
	if !named && slices.Equal(rules, v.GetRules()) {
		return v, nil
	}
	ignored := v.GetChainName()
	v = proto.CloneOf(v)
	v.Rules = rules
	if !named {
		return v, nil
	}
	v.ChainName = ""
	return v, []string{models.Ignored("chain_name", ignored, "only a CUSTOM chain has a name")}
}

// validate checks all fields.
func (h *handler) validate(_ string, v *iptables.RuleChain) error {
	var f models.Faults
	if v.GetName() == "" {
		f.Add("name", nil, "")
	} else if over := h.longestMark(v) - maxComment; over > 0 {
		f.Add("name", shorten(v.GetName()), "a name that is %d bytes shorter: the kernel keeps it in a comment of at most %d bytes", over, maxComment)
	}
	f.AddError(netns.Validate("namespace", v.GetNamespace()))
	for i, name := range v.GetInterfaces() {
		if name == "" {
			f.Add(fmt.Sprintf("interfaces[%d]", i), "", "the name of an interface")
		}
	}
	if _, known := iptables.RuleChain_Protocol_name[int32(v.GetProtocol())]; !known {
		f.Add("protocol", int32(v.GetProtocol()), "IPV4 or IPV6")
	}
	validateChain(&f, v)
	for i, rule := range v.GetRules() {
		if _, want := ruletext.Parse(rule); want != "" {
			f.Add(fmt.Sprintf("rules[%d]", i), shorten(rule), "%s", want)
		}
	}
	return f.Err()
}

// validateChain checks table, chain and policy.
func validateChain(f *models.Faults, v *iptables.RuleChain) {
	_, knownTable := iptables.RuleChain_Table_name[int32(v.GetTable())]
	if !knownTable {
		f.Add("table", int32(v.GetTable()), "FILTER, NAT, MANGLE, RAW or SECURITY")
	}
	_, knownChain := iptables.RuleChain_ChainType_name[int32(v.GetChainType())]
	switch custom := v.GetChainType() == iptables.RuleChain_CUSTOM; {
	case !knownChain:
		f.Add("chain_type", int32(v.GetChainType()), "CUSTOM, INPUT, OUTPUT, FORWARD, PREROUTING or POSTROUTING")
	case custom:
		if want := wrongChain(v.GetChainName()); want != "" {
			f.Add("chain_name", v.GetChainName(), "%s", want)
		}
	case knownTable && !has(v.GetTable(), v.GetChainType()):
		f.Add("chain_type", v.GetChainType().String(), "CUSTOM or %s, which table %s has", strings.Join(chainsOf(v.GetTable()), ", "), v.GetTable())
	}
	switch policy := v.GetDefaultPolicy(); {
	case policy == iptables.RuleChain_NONE:
	case policy != iptables.RuleChain_ACCEPT && policy != iptables.RuleChain_DROP:
		f.Add("default_policy", policy.String(), "NONE, ACCEPT or DROP: the kernel knows no other policy of a chain")
	case v.GetTable() != iptables.RuleChain_FILTER || v.GetChainType() == iptables.RuleChain_CUSTOM:
		f.Add("default_policy", policy.String(), "NONE, except for the built-in chains of table FILTER")
	}
}

// chainsOf returns the built-in chains of a table.
func chainsOf(table iptables.RuleChain_Table) (out []string) {
	for i := range int32(len(iptables.RuleChain_ChainType_name)) {
		if chain := iptables.RuleChain_ChainType(i); has(table, chain) {
			out = append(out, chain.String())
		}
	}
	return out
}

// chainName are names that need no quotes in any place of the input of iptables-restore.
var chainName = regexp.MustCompile(`^[A-Za-z0-9_.+][-A-Za-z0-9_.+:]*$`)

// wrongChain returns the allowed form of the name of a custom chain, or "". A name that it accepts is usable as
// written, which a test compares with iptables.
func wrongChain(name string) string {
	_, builtIn := iptables.RuleChain_ChainType_value[name]
	switch {
	case name == "":
		return "the name of the chain, as chain_type is CUSTOM"
	case len(name) > maxChain:
		return fmt.Sprintf("at most %d bytes", maxChain)
	case strings.HasPrefix(name, prefix):
		return fmt.Sprintf("a name that does not begin with %q: these are the agent's own chains", prefix)
	case builtIn || ruletext.IsTarget(name): // which of them iptables knows depends on the host, but a value must not
		return "a name that is no built-in chain, and no target of iptables"
	case !chainName.MatchString(name):
		return "letters, digits and -_.+: with none of - and : first"
	}
	return ""
}

// longestMark returns the length of the longest comment that the value needs.
func (h *handler) longestMark(v *iptables.RuleChain) int {
	m := mark{
		label: h.Label, name: v.GetName(), installation: strings.Repeat("0", 16), declared: digest(nil), rules: 1e9, kernel: digest(nil),
		in: "POSTROUTING", policy: "ACCEPT", was: "ACCEPT",
	}
	return len(m.String())
}

// shorten keeps errors about long rules readable.
func shorten(rule string) string {
	const most = 80
	if len(rule) > most {
		return strings.ToValidUTF8(rule[:most], "") + "..."
	}
	return rule
}

// equivalent ignores interfaces, which is only a dependency.
func equivalent(_ string, old, new *iptables.RuleChain) bool {
	return samePlace(old, new) && old.GetDefaultPolicy() == new.GetDefaultPolicy() && slices.Equal(old.GetRules(), new.GetRules())
}

// recreate: rules and policy change in place, all else is another chain.
func recreate(_ string, old, new *iptables.RuleChain, _ Meta) bool { return !samePlace(old, new) }

// samePlace reports whether both values are the same chain of the same table.
func samePlace(a, b *iptables.RuleChain) bool {
	return netns.Equal(a.GetNamespace(), b.GetNamespace()) && a.GetProtocol() == b.GetProtocol() && a.GetTable() == b.GetTable() &&
		a.GetChainType() == b.GetChainType() && a.GetChainName() == b.GetChainName()
}

// dependencies are the interfaces that the rules name, and the namespace.
func (h *handler) dependencies(_ string, v *iptables.RuleChain) (deps []scheduler.Dependency) {
	interfaces := models.For[*interfaces.Interface]()
	for _, name := range lists.Firsts(v.GetInterfaces()) { // labels of dependencies are unique
		deps = append(deps, scheduler.Dependency{Label: "interface-exists-" + name, Key: interfaces.KeyOf(name)})
	}
	for _, d := range h.Spaces.Dependencies(v.GetNamespace()) {
		d.Label += "-" + v.GetNamespace().GetReference() // as for interfaces, the label has the name
		deps = append(deps, d)
	}
	return deps
}

// claims: the rules of two values in one built-in chain would have no defined order, and one
// chain has one policy. Two custom chains cannot have one name.
func claims(_ string, v *iptables.RuleChain) []scheduler.Claim {
	where := tableOf(v).String() + " in " + netns.Identity(v.GetNamespace())
	c := scheduler.Claim{Field: "chain_type", Value: v.GetChainType().String(), Want: "a chain that no other value has: " + where}
	name := builtIn(v)
	if name == "" {
		name, c.Field, c.Value = v.GetChainName(), "chain_name", v.GetChainName()
	}
	c.Resource = fmt.Sprintf("linux-iptables/%s/%s/%s", netns.Identity(v.GetNamespace()), tableOf(v), name)
	return []scheduler.Claim{c}
}

// policyOf returns the declared policy, or "" for none.
func policyOf(v *iptables.RuleChain) string {
	if v.GetDefaultPolicy() == iptables.RuleChain_NONE {
		return ""
	}
	return v.GetDefaultPolicy().String()
}
