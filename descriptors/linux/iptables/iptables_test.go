package iptables

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/keyplane/keyplane/descriptors/linux/internal/drift"
	"github.com/keyplane/keyplane/descriptors/linux/internal/verbs"
	"github.com/keyplane/keyplane/descriptors/linux/netns"
	"github.com/keyplane/keyplane/internal/scratch"
	"github.com/keyplane/keyplane/internal/testkit"
	"github.com/keyplane/keyplane/proto/ligato/linux/iptables"
	"github.com/keyplane/keyplane/scheduler"
)

func TestMain(m *testing.M) { os.Exit(scratch.Main(m.Run)) }

// variants are the two implementations of iptables. Most hosts have both, and the
// administrator chooses one.
func variants() []string { return []string{"nft", "legacy"} }

// withVariant puts one variant first in PATH, under the names that the agent calls.
func withVariant(t testing.TB, variant string) {
	t.Helper()
	dir := t.TempDir()
	for _, family := range []string{"iptables", "ip6tables"} {
		for _, what := range []string{"", "-save", "-restore"} {
			path, err := find(family + "-" + variant + what)
			testkit.Need(t, "iptables-"+variant+" (iptables)", err == nil)
			if err := os.Symlink(path, filepath.Join(dir, family+what)); err != nil {
				t.Fatal(err)
			}
		}
	}
	t.Setenv("PATH", dir+":"+os.Getenv("PATH"))
}

// A host has the namespace red.
type host struct {
	*handler
	t     testing.TB
	space *netns.Space
	name  string // of the namespace, as the programs know it
}

// inRed returns a handler of label vpp1 and the namespace red, without any rules.
func inRed(t testing.TB) *host {
	t.Helper()
	h, names := fnv.New32a(), t.TempDir() // another one for each call
	h.Write([]byte(names))
	name := fmt.Sprint("red-", h.Sum32())
	if err := os.Symlink(filepath.Join(testkit.Netns(t, name), name), filepath.Join(names, "red")); err != nil {
		t.Fatal(err)
	}
	spaces := netns.New(netns.Options{Dir: names})
	out := &host{t: t, name: name}
	out.handler = handlerOf(spaces, "vpp1", "")
	red, err := spaces.Open(chainIn(t, "").GetNamespace())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(red.Close)
	out.space = red
	return out
}

func handlerOf(spaces *netns.Set, label, installation string) *handler {
	log := slog.New(slog.DiscardHandler)
	return newHandler(Options{
		Spaces: spaces, Log: log, Label: label, Installation: installation,
		Watch: drift.New(drift.Options{Spaces: spaces, Log: log, Installation: installation, Lost: func([]string) {}, Changed: func() {}, Missed: func() {}}),
	})
}

// chainIn parses a value in the namespace red.
func chainIn(t testing.TB, text string) *iptables.RuleChain {
	t.Helper()
	return testkit.Parse[*iptables.RuleChain](t, `namespace { type: NSID reference: "red" } `+text)
}

// do runs a command in red and returns its output.
func (h *host) do(command string) string {
	h.t.Helper()
	cmd := exec.Command("ip", append([]string{"netns", "exec", h.name}, strings.Fields(command)...)...)
	out, err := cmd.CombinedOutput()
	if err != nil {
		h.t.Fatalf("%s: %v: %s", command, err, out)
	}
	return string(out)
}

// expect checks that a command prints the lines, in this order and with nothing between. KP
// stands for the agent's name of a chain.
func (h *host) expect(command string, want ...string) {
	h.t.Helper()
	got := ownName.ReplaceAllString(h.do(command), "KP")
	var lines []string
	for one := range strings.Lines(got) {
		if !strings.Contains(one, agentMark) || strings.Contains(one, " -j ") {
			lines = append(lines, strings.TrimSpace(one))
		}
	}
	if text := strings.Join(lines, "\n"); text != strings.Join(want, "\n") {
		h.t.Errorf("%s:\n%s\nwant\n%s", command, text, strings.Join(want, "\n"))
	}
}

// recheck does what run does soon after a change.
func (h *host) recheck() (changed bool) {
	h.t.Helper()
	changed, err := h.checkAll(context.Background(), h.space.ID)
	if err != nil {
		h.t.Fatal(err)
	}
	return changed
}

// bench calls the verbs of the descriptor.
func (h *host) bench() *verbs.Bench[*iptables.RuleChain, Meta] {
	return &verbs.Bench[*iptables.RuleChain, Meta]{D: h.descriptor()}
}

// each runs a test with each variant.
func each(t *testing.T, f func(t *testing.T)) {
	for _, variant := range variants() {
		t.Run(variant, func(t *testing.T) {
			withVariant(t, variant)
			f(t)
		})
	}
}

// A chain of every kind is created, changed and removed, and Retrieve sees it.
func TestLifecycles(t *testing.T) {
	each(t, func(t *testing.T) {
		for _, protocol := range []string{"IPV4", "IPV6"} {
			for table := range iptables.RuleChain_Table_name {
				if testing.Short() && table != int32(iptables.RuleChain_FILTER) {
					continue
				}
				for _, kind := range append(chainsOf(iptables.RuleChain_Table(table)), "CUSTOM") {
					where := fmt.Sprintf(`name: "c/%s %s" protocol: %s table: %s chain_type: %s `, kind, protocol, protocol, iptables.RuleChain_Table(table), kind)
					if kind == "CUSTOM" {
						where += `chain_name: "mine" `
					}
					t.Run(fmt.Sprint(protocol, iptables.RuleChain_Table(table), kind), func(t *testing.T) {
						h := inRed(t)
						b := h.bench()
						b.Lifecycle(t, chainIn(t, where+`rules: "-p tcp --dport 22 -j ACCEPT" rules: "-p udp -j RETURN"`),
							chainIn(t, where), chainIn(t, where+`rules: "-p udp  -j RETURN" rules: "-p icmp"`))
						if got := h.do(tableOf(chainIn(t, where)).program() + "-save"); strings.Contains(got, agentMark) || strings.Contains(got, "mine") {
							t.Errorf("this is left:\n%s", got)
						}
					})
				}
			}
		}
	})
}

// Rules keep their order, and rules of others their places.
func TestOrder(t *testing.T) {
	each(t, func(t *testing.T) {
		h := inRed(t)
		h.do("iptables -A INPUT -s 192.0.2.1 -j DROP")
		b := h.bench()
		one := chainIn(t, `name: "in" chain_type: INPUT default_policy: DROP rules: "-s 10.0.0.2 -j ACCEPT" rules: "-s 10.0.0.1 -j ACCEPT" rules: "-s 10.0.0.2 -j DROP"`)
		b.Create(t, one)
		h.do("iptables -A INPUT -s 192.0.2.2 -j DROP")
		const jump = `-A INPUT -m comment --comment "/vnf-agent/vpp1/in" -j KP`
		h.expect("iptables -S INPUT", "-P INPUT DROP", "-A INPUT -s 192.0.2.1/32 -j DROP", jump, "-A INPUT -s 192.0.2.2/32 -j DROP")
		h.expect("iptables -S "+chainOf("vpp1", one), "-N KP", "-A KP -s 10.0.0.2/32 -j ACCEPT", "-A KP -s 10.0.0.1/32 -j ACCEPT", "-A KP -s 10.0.0.2/32 -j DROP")
		b.Expect(t, one)

		other := chainIn(t, `name: "in" chain_type: INPUT rules: "-s 10.0.0.1 -j ACCEPT" rules: "-s 10.0.0.2 -j ACCEPT"`)
		if !b.Change(t, one, other) {
			t.Error("another order recreated the chain")
		}
		h.expect("iptables -S INPUT", "-P INPUT ACCEPT", "-A INPUT -s 192.0.2.1/32 -j DROP", jump, "-A INPUT -s 192.0.2.2/32 -j DROP")
		h.expect("iptables -S "+chainOf("vpp1", one), "-N KP", "-A KP -s 10.0.0.1/32 -j ACCEPT", "-A KP -s 10.0.0.2/32 -j ACCEPT")
		b.Expect(t, other)
		b.Delete(t, other)
		h.expect("iptables -S", "-P INPUT ACCEPT", "-P FORWARD ACCEPT", "-P OUTPUT ACCEPT", "-A INPUT -s 192.0.2.1/32 -j DROP", "-A INPUT -s 192.0.2.2/32 -j DROP")
	})
}

// The policy that was there before returns, also after a restart, but not if somebody else has
// changed it.
func TestPolicy(t *testing.T) {
	each(t, func(t *testing.T) {
		h := inRed(t)
		h.do("iptables -P FORWARD DROP")
		accept := chainIn(t, `name: "f" chain_type: FORWARD default_policy: ACCEPT`)
		h.bench().Create(t, accept)
		b := h.bench() // knows nothing
		found := b.Retrieve(t, accept)[b.Key(t, accept)]
		if found.Value != accept || found.Meta.Was != "DROP" {
			t.Errorf("retrieved %v, %+v", found.Value, found.Meta)
		}
		b.Create(t, accept) // as after an interrupted one
		b.Delete(t, accept)
		h.expect("iptables -S FORWARD", "-P FORWARD DROP")

		b.Create(t, accept)
		h.do("iptables -P FORWARD DROP")
		if found := b.Retrieve(t, accept)[b.Key(t, accept)]; found.Value.GetDefaultPolicy() != iptables.RuleChain_DROP {
			t.Errorf("retrieved %v", found.Value)
		}
		b.Delete(t, accept)
		h.expect("iptables -S FORWARD", "-P FORWARD DROP")
	})
}

// What another program changes in a chain is seen, before and after a restart.
func TestChangedByHand(t *testing.T) {
	each(t, func(t *testing.T) {
		v := chainIn(t, `name: "in" chain_type: INPUT rules: "-s 10.0.0.1 -j ACCEPT" rules: "-s 10.0.0.2 -p tcp --dport 80 -j ACCEPT"`)
		kp := chainOf("vpp1", v)
		for _, change := range []string{
			"iptables -R " + kp + " 2 -s 10.0.0.3 -j ACCEPT",
			"iptables -D " + kp + " 3",
			"iptables -A " + kp + " -j DROP",
			"iptables -I " + kp + " 3 -j DROP",
			"iptables -I " + kp + " 1 -j DROP",
			"iptables -F " + kp,
			`iptables -A INPUT -j ` + kp + ` -m comment --comment /vnf-agent/vpp1/in`,
			"iptables -F INPUT",
		} {
			t.Run(change, func(t *testing.T) {
				h := inRed(t)
				b := h.bench()
				b.Create(t, v)
				if h.recheck() {
					t.Error("the agent's own chain counts as changed")
				}
				b.Expect(t, v)
				h.do(change)
				if !h.recheck() {
					t.Error("the change is not noticed")
				}
				other := &host{t: t, handler: handlerOf(h.Spaces, "vpp1", ""), space: h.space, name: h.name}
				after := other.bench()
				other.repair(after.D, after.Key(t, v), v)
				after.Expect(t, v)
				if other.recheck() {
					t.Error("the repaired chain counts as changed")
				}
				h.expect("iptables -S", "-P INPUT ACCEPT", "-P FORWARD ACCEPT", "-P OUTPUT ACCEPT", "-N KP",
					`-A INPUT -m comment --comment "/vnf-agent/vpp1/in" -j KP`, "-A KP -s 10.0.0.1/32 -j ACCEPT", "-A KP -s 10.0.0.2/32 -p tcp -m tcp --dport 80 -j ACCEPT")
			})
		}
	})
}

// repair does what the scheduler does with the retrieved value to get v.
func (h *host) repair(d scheduler.Descriptor[*iptables.RuleChain, Meta], key string, v *iptables.RuleChain) {
	h.t.Helper()
	for f, err := range d.Retrieve(h.t.Context(), []desired{{Key: key, Value: v}}) {
		switch {
		case err != nil:
			h.t.Fatal(err)
		case f.Value == nil: // only what was learned
			continue
		case f.Key != key || d.Equivalent(key, f.Value, v):
			h.t.Fatalf("retrieved %s: %v", f.Key, f.Value)
		case !d.Recreate(key, f.Value, v, f.Meta):
			if _, err := d.Update(h.t.Context(), key, f.Value, v, f.Meta); err != nil {
				h.t.Fatal(err)
			}
			return
		}
		if err := d.Delete(h.t.Context(), key, f.Value, f.Meta); err != nil {
			h.t.Fatal(err)
		}
	}
	if _, err := d.Create(h.t.Context(), key, v); err != nil {
		h.t.Fatal(err)
	}
}

// A flush of all chains, which removes the marks too, is repaired.
func TestFlushed(t *testing.T) {
	each(t, func(t *testing.T) {
		for _, what := range []string{`chain_type: INPUT default_policy: DROP`, `chain_type: CUSTOM chain_name: "mine"`} {
			h := inRed(t)
			b := h.bench()
			v := chainIn(t, `name: "v" rules: "-j ACCEPT" `+what)
			b.Create(t, v)
			h.do("iptables -F")
			h.repair(b.D, b.Key(t, v), v)
			b.Expect(t, v)
			b.Create(t, v) // its metadata is that of the repaired one
			b.Delete(t, v)
			h.expect("iptables -S", "-P INPUT ACCEPT", "-P FORWARD ACCEPT", "-P OUTPUT ACCEPT")
		}
	})
}

// Chains of others stay, whatever their names are.
func TestForeign(t *testing.T) {
	each(t, func(t *testing.T) {
		h := inRed(t)
		h.do("iptables -N mine")
		h.do("iptables -A mine -j DROP")
		b := h.bench()
		v := chainIn(t, `name: "custom" chain_type: CUSTOM chain_name: "mine" rules: "-j ACCEPT"`)
		_, err := b.D.Create(t.Context(), b.Key(t, v), v)
		if !errors.Is(err, ErrConflict) {
			t.Errorf("created: %v", err)
		}
		stranger := handlerOf(h.Spaces, "vpp2", "")
		theirs := verbs.Bench[*iptables.RuleChain, Meta]{D: stranger.descriptor()}
		theirs.Create(t, chainIn(t, `name: "theirs" chain_type: CUSTOM chain_name: "theirs" rules: "-j ACCEPT"`))
		b.Expect(t)
		v = chainIn(t, `name: "custom" chain_type: CUSTOM chain_name: "theirs" rules: "-j DROP"`)
		_, err = b.D.Create(t.Context(), b.Key(t, v), v)
		if !errors.Is(err, ErrConflict) || !strings.Contains(err.Error(), "value theirs of the agent with label vpp2") {
			t.Errorf("created: %v", err)
		}
		// A chain of ours that another program has replaced is theirs.
		v = chainIn(t, `name: "custom" chain_type: CUSTOM chain_name: "ours" rules: "-j DROP"`)
		b.Create(t, v)
		h.do("iptables -F ours")
		h.do("iptables -A ours -j RETURN")
		if _, err := b.D.Update(t.Context(), b.Key(t, v), v, v, Meta{NS: h.space.ID, Chain: "ours"}); !errors.Is(err, ErrConflict) {
			t.Errorf("updated: %v", err)
		}
		b.Delete(t, v)
		h.expect("iptables -S ours", "-N ours", "-A ours -j RETURN")
		h.expect("iptables -S mine", "-N mine", "-A mine -j DROP")
		h.expect("iptables -S theirs", "-N theirs", "-A theirs -j ACCEPT")
	})
}

// Chains of one batch may jump to each other; a bad one does not stop the others, and its
// error names the rule.
func TestTogether(t *testing.T) {
	each(t, func(t *testing.T) {
		h := inRed(t)
		values := []desired{
			{Key: "1", Value: chainIn(t, `name: "in" chain_type: INPUT rules: "-j first"`)},
			{Key: "2", Value: chainIn(t, `name: "first" chain_type: CUSTOM chain_name: "first" rules: "-j second"`)},
			{Key: "3", Value: chainIn(t, `name: "second" chain_type: CUSTOM chain_name: "second" rules: "-j ACCEPT"`)},
			{Key: "4", Value: chainIn(t, `name: "v6" protocol: IPV6 chain_type: INPUT rules: "-s fd00::/8 -j DROP"`)},
		}
		for _, one := range h.createAll(t.Context(), values) {
			if one.Err != nil {
				t.Error(one.Err)
			}
		}
		bad := desired{Key: "5", Value: chainIn(t, `name: "bad" chain_type: OUTPUT rules: "-j ACCEPT" rules: "-j LOG --log-level nonsense" rules: "-j DROP"`)}
		again := h.createAll(t.Context(), append(values, bad))
		for i, one := range again {
			if i < len(values) && one.Err != nil {
				t.Errorf("%d: %v", i, one.Err)
			}
		}
		if err := fmt.Sprint(again[4].Err); !strings.HasPrefix(err, "rules[1]: iptables-restore: ") {
			t.Error(err)
		}
		h.expect("iptables -S second", "-N second", "-A second -j ACCEPT")
		h.expect("iptables -S OUTPUT", "-P OUTPUT ACCEPT")
	})
}

// ownName finds the agent's names of chains.
var ownName = regexp.MustCompile(`\bkp-[0-9a-f]{16}\b`)
