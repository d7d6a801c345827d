package iptables

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"

	"github.com/keyplane/keyplane/proto/ligato/linux/iptables"
)

// prefix begins the names of chains that hold the rules of a value for a built-in chain. The
// rest is a fingerprint of label and name, since a chain's name has at most maxChain bytes.
const prefix = "kp-"

// maxChain is the length of the longest chain name, in bytes: XT_EXTENSION_MAXNAMELEN of
// linux/netfilter/x_tables.h, without the final zero.
const maxChain = 28

// A table is a table of rules of one IP version.
type table struct {
	ipv6 bool
	name string // "filter"
}

// String is the table as a command line begins with it.
func (t table) String() string { return t.program() + " -t " + t.name }

// program is the name of the command of the IP version.
func (t table) program() string {
	if t.ipv6 {
		return "ip6tables"
	}
	return "iptables"
}

// tableOf returns the table of a value.
func tableOf(v *iptables.RuleChain) table {
	return table{v.GetProtocol() == iptables.RuleChain_IPV6, strings.ToLower(v.GetTable().String())}
}

// builtIn returns the built-in chain of a value, or "" for a custom one.
func builtIn(v *iptables.RuleChain) string {
	if v.GetChainType() == iptables.RuleChain_CUSTOM {
		return ""
	}
	return v.GetChainType().String()
}

// chainOf returns the name of the chain with the rules of v.
func chainOf(label string, v *iptables.RuleChain) string {
	if builtIn(v) == "" {
		return v.GetChainName()
	}
	sum := sha256.Sum256([]byte(label + "/" + v.GetName()))
	return prefix + hex.EncodeToString(sum[:8])
}

// has reports whether the kernel has the built-in chain in the table. nat has INPUT since
// Linux 2.6.36.
func has(table iptables.RuleChain_Table, chain iptables.RuleChain_ChainType) bool {
	const (
		in   = iptables.RuleChain_INPUT
		out  = iptables.RuleChain_OUTPUT
		fwd  = iptables.RuleChain_FORWARD
		pre  = iptables.RuleChain_PREROUTING
		post = iptables.RuleChain_POSTROUTING
	)
	switch table {
	case iptables.RuleChain_FILTER, iptables.RuleChain_SECURITY:
		return chain == in || chain == fwd || chain == out
	case iptables.RuleChain_NAT:
		return chain == pre || chain == in || chain == out || chain == post
	case iptables.RuleChain_MANGLE:
		return chain == pre || chain == in || chain == fwd || chain == out || chain == post
	case iptables.RuleChain_RAW:
		return chain == pre || chain == out
	}
	return false
}

// isBuiltIn reports whether the kernel, and no program, made a chain of that name.
func isBuiltIn(chain string) bool {
	kind, ok := iptables.RuleChain_ChainType_value[chain]
	return ok && kind != int32(iptables.RuleChain_CUSTOM)
}
