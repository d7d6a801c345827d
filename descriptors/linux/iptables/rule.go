package iptables

import (
	"crypto/sha256"
	"encoding/hex"
	"slices"

	"github.com/keyplane/keyplane/descriptors/linux/iptables/internal/ruletext"
)

// normalRule returns the parsed form of a rule as text. Other spellings of one rule stay different: only iptables knows
// which are equal. A rule that cannot be parsed stays.
func normalRule(text string) string {
	r, want := ruletext.Parse(text)
	if want != "" {
		return text
	}
	return ruletext.Join(r.Words())
}

// digest is a fingerprint of rules: 16 hexadecimal digits.
func digest(rules []string) string {
	sum := sha256.New()
	for _, rule := range rules {
		sum.Write([]byte(rule))
		sum.Write([]byte{'\n'})
	}
	return hex.EncodeToString(sum.Sum(nil)[:8])
}

// normalRules applies normalRule to all. The slice is a copy, since values must not be changed
// in place.
func normalRules(rules []string) []string {
	out := slices.Clone(rules)
	for i, rule := range out {
		out[i] = normalRule(rule)
	}
	return out
}
