package iptables

import (
	"os/exec"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/keyplane/keyplane/internal/testkit"
	"github.com/keyplane/keyplane/internal/testkit/draw"
)

// Each name that passes validation is usable as written: iptables makes the chain, jumps to it, and lists it so.
func TestChainNamesAreUsable(t *testing.T) {
	testkit.Netns(t)
	special := append(strings.Fields("standard ACCEPT DROP RETURN QUEUE LOG REJECT SNAT DNAT MASQUERADE MARK CT NOTRACK TTL HL TEE ULOG"),
		"error", "ERROR", "NAT", "tcp", "comment", "set", "INPUT", "input", "a:b", ":a", "+", "_x", "x.", ".", "..", "-a", "!a", "a!", "a b", "a\tb", "a'b", "*filter", "#",
		"COMMIT", "COMMITS", "é", strings.Repeat("x", maxChain), strings.Repeat("x", maxChain+1), "%s", "a%d", "a=b", "a,b", "[0:0]", "kp-a", "KP-a", "0", "1", "a\x00b", "`", "$a", "\\",
	)
	name := rapid.OneOf(rapid.SampledFrom(special), rapid.StringMatching(`[-A-Za-z0-9_.+:]{1,29}`), rapid.StringMatching(`[ -~]{1,6}`))
	for _, variant := range variants() {
		t.Run(variant, func(t *testing.T) {
			withVariant(t, variant)
			check := func(t interface{ Errorf(string, ...any) }, name string) {
				if wrongChain(name) != "" {
					return
				}
				for _, family := range []string{"iptables", "ip6tables"} {
					text := "*filter\n:" + name + " - [0:0]\n-A " + name + " -j RETURN\n-A OUTPUT -j " + name + "\nCOMMIT\n"
					restore := exec.Command(family+"-restore", "--noflush")
					restore.Stdin = strings.NewReader(text)
					out, err := restore.CombinedOutput()
					saved, _ := exec.Command(family+"-save", "-t", "filter").Output()
					if lines := strings.Split(string(saved), "\n"); err != nil || !slices.Contains(lines, "-A OUTPUT -j "+name) || !slices.Contains(lines, "-A "+name+" -j RETURN") {
						t.Errorf("%s cannot use %q: %v %s\n%s", family, name, err, out, saved)
					}
					_ = exec.Command(family, "-F").Run()
					_ = exec.Command(family, "-X").Run()
				}
			}
			for _, one := range special {
				check(t, one)
			}
			draw.Few(t, 40, func(rt *rapid.T) { check(rt, name.Draw(rt, "name")) })
		})
	}
}

// What iptables takes for a target is no name of a chain.
func TestTargetsAreNoChains(t *testing.T) {
	for _, name := range []string{"LOG", "REJECT", "MASQUERADE", "standard", "HL", "TTL"} {
		if wrongChain(name) == "" {
			t.Errorf("%s is accepted", name)
		}
	}
}
