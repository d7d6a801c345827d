package iptables

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/keyplane/keyplane/descriptors/linux/netns"
	"github.com/keyplane/keyplane/internal/testkit"
	"github.com/keyplane/keyplane/proto/ligato/linux/iptables"
	"github.com/keyplane/keyplane/scheduler"
	"github.com/keyplane/keyplane/scheduler/conformance"
)

// broken is a backend that cannot read.
type broken struct{ backend }

func (broken) read(context.Context, *netns.Space, bool) (listing, error) {
	return nil, errors.New("broken")
}

// denied is a backend that may not read.
type denied struct{ backend }

func (denied) read(context.Context, *netns.Space, bool) (listing, error) {
	return nil, fmt.Errorf("reading tables of rules: %w", unix.EPERM)
}

// An agent without the right to read rules works, unless a chain is wanted.
func TestWithoutRights(t *testing.T) {
	h := inRed(t)
	h.tool = denied{}
	for _, wanted := range [][]desired{nil, {{Key: "key", Value: chainIn(t, `name: "in" chain_type: INPUT`)}}} {
		var failed error
		for _, err := range h.retrieve(t.Context(), wanted) {
			failed = err
		}
		if (failed != nil) != (len(wanted) > 0) {
			t.Errorf("%d chains are wanted: %v", len(wanted), failed)
		}
	}
}

func TestConforms(t *testing.T) {
	withVariant(t, "nft")
	c := func(text string) *iptables.RuleChain { return chainIn(t, text) }
	in := func(more string) *iptables.RuleChain { return c(`name: "in" chain_type: INPUT ` + more) }
	var last *host
	conformance.Run(t, conformance.Suite[*iptables.RuleChain, Meta]{
		New: func(t *testing.T) scheduler.Descriptor[*iptables.RuleChain, Meta] {
			last = inRed(t)
			return last.descriptor()
		},
		Values: []desired{
			{Value: in(`default_policy: DROP rules: "-i lo  -j ACCEPT" rules: "-m comment --comment \"a b\" -j DROP"`)},
			{Value: c(`name: "in6" protocol: IPV6 chain_type: INPUT rules: "-s fd00::/8 -j DROP"`)},
			{Value: c(`name: "nat" table: NAT chain_type: POSTROUTING interfaces: "eth0" rules: "-o eth0 -j MASQUERADE"`)},
			{Value: c(`name: "own" table: MANGLE chain_type: CUSTOM chain_name: "own" rules: "-j MARK --set-mark 7"`)},
			{Value: c(`name: "empty" table: RAW chain_type: PREROUTING chain_name: "superfluous"`)},
		},
		Changes: []conformance.Change[*iptables.RuleChain]{
			{Name: "rules", From: in(`rules: "-j DROP"`), To: in(`rules: "-s 10.0.0.1 -j ACCEPT" rules: "-j DROP"`), How: conformance.Updated},
			{Name: "order", From: in(`rules: "-s 10.0.0.1 -j ACCEPT" rules: "-j DROP"`), To: in(`rules: "-j DROP" rules: "-s 10.0.0.1 -j ACCEPT"`), How: conformance.Updated},
			{Name: "policy", From: in(`default_policy: DROP`), To: in(``), How: conformance.Updated},
			{Name: "table", From: in(``), To: in(`table: MANGLE`), How: conformance.Recreated},
			{Name: "chain", From: in(``), To: c(`name: "in" chain_type: FORWARD`), How: conformance.Recreated},
			{Name: "protocol", From: in(``), To: in(`protocol: IPV6`), How: conformance.Recreated},
			{Name: "blanks", From: in(`rules: "-j DROP"`), To: in(`rules: " -j  \"DROP\""`), How: conformance.Unchanged},
			{Name: "needs", From: in(``), To: in(`interfaces: "eth0"`), How: conformance.Unchanged},
		},
		Break: func(*testing.T) { last.tool = broken{last.tool} },
		Invalid: []conformance.Invalid[*iptables.RuleChain]{
			{Name: "no name", Value: c(`chain_type: INPUT`), Fields: []string{"name"}},
			{Name: "long name", Value: c(`name: "` + strings.Repeat("n", 200) + `" chain_type: INPUT`), Fields: []string{"name"}},
			{Name: "all at once", Value: testkit.Parse[*iptables.RuleChain](t, `name: "x" namespace { type: NSID } interfaces: "" protocol: 7 table: 9 chain_type: 9
				default_policy: QUEUE rules: ""`),
				Fields: []string{"namespace.reference", "interfaces[0]", "protocol", "table", "chain_type", "default_policy", "rules[0]"}},
			{Name: "rules", Value: c(`name: "x" chain_type: INPUT rules: "" rules: "-j ACCEPT" rules: "-A OUTPUT -j DROP" rules: "--comment \"" rules: "-j ACCEPT\nCOMMIT"`),
				Fields: []string{"rules[0]", "rules[2]", "rules[3]", "rules[4]"}},
			{Name: "chain of another table", Value: c(`name: "x" table: RAW chain_type: FORWARD default_policy: DROP`), Fields: []string{"chain_type", "default_policy"}},
			{Name: "custom without name", Value: c(`name: "x"`), Fields: []string{"chain_name"}},
			{Name: "custom like built-in", Value: c(`name: "x" chain_name: "INPUT" default_policy: ACCEPT`), Fields: []string{"chain_name", "default_policy"}},
			{Name: "custom like ours", Value: c(`name: "x" chain_name: "kp-1"`), Fields: []string{"chain_name"}},
			{Name: "long custom", Value: c(`name: "x" chain_name: "` + strings.Repeat("c", 29) + `"`), Fields: []string{"chain_name"}},
			{Name: "custom with blank", Value: c(`name: "x" chain_name: "a b"`), Fields: []string{"chain_name"}},
		},
	})
}

// Every configuration changes into every other one, and back to nothing.
func TestPairs(t *testing.T) {
	each(t, func(t *testing.T) {
		all := []*iptables.RuleChain{
			chainIn(t, `name: "v" chain_type: INPUT default_policy: DROP rules: "-j ACCEPT"`),
			chainIn(t, `name: "v" chain_type: INPUT`),
			chainIn(t, `name: "v" chain_type: FORWARD default_policy: ACCEPT rules: "-s 10.0.0.1 -j DROP" rules: "-j RETURN"`),
			chainIn(t, `name: "v" protocol: IPV6 chain_type: INPUT default_policy: DROP rules: "-j ACCEPT"`),
			chainIn(t, `name: "v" table: NAT chain_type: OUTPUT rules: "-j ACCEPT"`),
			chainIn(t, `name: "v" table: NAT chain_name: "mine" rules: "-j ACCEPT"`),
			chainIn(t, `name: "v" chain_name: "mine" rules: "-j ACCEPT"`),
		}
		for i, from := range all {
			for k, to := range all {
				if i == k || testing.Short() && k != (i+1)%len(all) {
					continue
				}
				h := inRed(t)
				b := h.bench()
				b.Create(t, from)
				if k%2 == 0 { // as after some time, and at once
					h.recheck()
				}
				b.Change(t, from, to)
				b.Expect(t, to)
				b.Delete(t, to)
				b.Expect(t)
				for _, program := range []string{"iptables", "ip6tables"} {
					h.expect(program+" -S", "-P INPUT ACCEPT", "-P FORWARD ACCEPT", "-P OUTPUT ACCEPT")
				}
			}
		}
	})
}

// Two values claim the same chain however they name it.
func TestClaims(t *testing.T) {
	resource := func(text string) string { return claims("", chainIn(t, text))[0].Resource }
	if resource(`name: "a" chain_type: INPUT`) != resource(`name: "b" chain_type: INPUT rules: "-j DROP"`) {
		t.Error("two values may have INPUT")
	}
	for _, other := range []string{`chain_type: OUTPUT`, `chain_type: INPUT table: NAT`, `chain_type: INPUT protocol: IPV6`, `chain_name: "x"`} {
		if resource(`chain_type: INPUT`) == resource(other) {
			t.Errorf("%s is claimed with INPUT", other)
		}
	}
}
