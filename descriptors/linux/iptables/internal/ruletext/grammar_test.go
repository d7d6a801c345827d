package ruletext

import (
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/keyplane/keyplane/descriptors/linux/iptables/internal/ruletext/cases"
	"github.com/keyplane/keyplane/internal/scratch"
	"github.com/keyplane/keyplane/internal/testkit"
	"github.com/keyplane/keyplane/internal/testkit/draw"
)

// wrongRules are no rules of the chain, or none at all, and a part of what the error says.
func wrongRules() map[string]string {
	const outside = "without "
	return map[string]string{
		// What makes iptables do something else.
		"-h": outside, "-j ACCEPT -h": outside, "-m mark -h": outside, "-j LOG --help": outside, "--help": outside, "--he": outside, "--h": outside,
		"-p tcp -h": outside, "-p tcp -m tcp -hreject": outside, "--help=mark": outside, `"-h"`: outside, "-fh": outside, "-vh": outside, "! -h": outside,
		"-V": outside, "-fV": outside, "-vV -j DROP": outside, "--version": outside, "--vers": outside, "-j ACCEPT --versio": outside,
		"-4 -j ACCEPT": outside, "-6 -j ACCEPT": outside, "--ipv4": outside, "--ipv6 -j DROP": outside, "-f4": outside,
		"-A OUTPUT -j DROP": outside, "-AOUTPUT": outside, "--append OUTPUT": outside, "--app=OUTPUT": outside, "-I OUTPUT": outside, "--ins OUTPUT": outside,
		"-D OUTPUT": outside, "-F": outside, "--flush": outside, "-fF": outside, "-X": outside, "-Z": outside, "-N a": outside, "--new a": outside, "-P INPUT DROP": outside,
		"-L": outside, "-S": outside, "-R INPUT 1": outside, "-E a b": outside, "-C INPUT": outside,
		"-t nat -j ACCEPT": outside, "-tnat": outside, "--table nat": outside, "--tab=nat": outside, "-w": outside, "-w5 -j DROP": outside, "--wait 3": outside, "-W 3": outside,
		"-M x": outside, "--modprobe=x": outside, "--mod x": outside, "-n -j DROP": outside, "--numeric": outside, "-x": outside, "--exact": outside, "--line-numbers": outside,
		"-m comment --comment a --help": outside, "-m comment --comment a -h": outside, "-p tcp --tcp-flags SYN -h": "with 2 values", "-c 1 -h": "with 2 values",
		// An unknown match or target may have options without values.
		"-m other --flag -h": outside, "-m other --flag --help": outside, "-m other --opt=5 -fV": outside, "-j OTHER --vers": outside, "-j OTHER --flag --helper -V": outside,
		"-j OTHER --opt -hx": outside, "-m other ! --flag --ver": outside, "-m other --flag -m comment --comment -h": outside, "-m other --flag -4": outside,
		"-m other --l": outside, "-j OTHER --help=5": outside, "-j OTHER --t x": outside,
		// What nothing in the rule has.
		"--nosuch": "-m or -j", "-j ACCEPT --nosuch": "no options", "-p tcp --nosuch 1": "-m or -j", "-m tcp --sport 5 --nosuch": "--sport",
		"--dport 80 -p tcp": "-m or -j", "--to-ports 80 -j REDIRECT": "-m or -j", "-m mark --ctstate NEW": "--mark", "-p udp --syn": "-m or -j", "-k": "instead of -k",
		"-é": "instead of -",
		// Ambiguous names.
		"-p tcp --d 80": "--destination, --delete", "--in eth0": "--in-interface, --insert", "--ver": "--verbose, --version", "--s 1.2.3.4": "--source",
		"-m limit --l 5/s": "--limit", "-j MARK --set- 5": "--set-mark", "--": "matches and a target", "--=": "-m or -j",
		// Values.
		"-j": "with a value", "-s": "with a value", "-m comment --comment": "with a value", "-p tcp --tcp-flags SYN": "with 2 values", "-c 1": "with 2 values", "-p tcp --syn=1": "without a value",
		"-p tcp --tcp-flags SYN ! -j DROP": "with 2 values", "-j ACCEPT more": `"more"`, "ACCEPT": `"ACCEPT"`, "-m comment --comment 'a b'": `"b'"`, "-j ACCEPT # x": `"#"`,
		"-j ACCEPT -": `"-"`, "-j DROP \"\"": `""`, "-- -j ACCEPT": `"--"`, "-s 10.0.0.1 10.0.0.2": `"10.0.0.2"`, "-s ! 10.0.0.1": `"10.0.0.1"`, "-i a b": `"b"`,
		"-m -h": "the name of a match", "-m ../x": "the name of a match", "-j -h": "the name of", "-j \"a b\"": "the name of", `"-j DROP"`: "the name of", "-m \"\"": "the name of", "-g --help": "the name of a chain",
		"-m " + strings.Repeat("m", 29): "the name of",
		// Signs.
		"!": "after", "-j DROP !": "after", "! -j DROP": `without "!"`, "! -m mark": `without "!"`, "! ! -s 10.0.0.1": `"!"`, "! -v": `without "!"`, "! 5": `"5"`, "! --": `"--"`,
		// More than one.
		"-j DROP -j ACCEPT": "once", "-j DROP -g a": "once", "-jDROP --jump=DROP": "once", "-s 10.0.0.1 --src 10.0.0.2": "once", "-p tcp -p udp": "once", "-ilo -ilo": "once", "-ff": "once",
		// Lines.
		"": "matches and a target", " \t": "matches and a target", "-j ACCEPT\nCOMMIT": "one line", "-j ACCEPT\r-h": "one line", "-j ACCEPT\x00": "one line", "-j \x1bDROP": "one line",
		"-m comment --comment \"a\n-h\"": "one line", `-m comment --comment "a`: "closed quotes", `--comment "\"`: "closed quotes",
		"COMMIT": `"COMMIT"`, "*nat": `"*nat"`, ":a - [0:0]": `":a"`, "# x": `"#"`, "[1:2] -j DROP": `"[1:2]"`,
		"-m comment --comment " + strings.Repeat("x", maxRule): "bytes", strings.Repeat("-v ", maxWords+1): "words",
	}
}

// unknownOptions are rules with a match or target that is not known; they stay as they are.
func unknownOptions() []string {
	return []string{
		"-m other --flag", "-m other --opt 5 -j DROP", "-m other --opt=-h --flag", "-m other ! --opt 5", "-j OTHER --opt 5 --flag", "-j OTHER --opt -1", "-m other --opt --",
		"-m other --helper x --opt -s", "-m other --opt -jh", "-j OTHER --versions",
	}
}

func TestRuleTexts(t *testing.T) {
	for _, one := range cases.Spellings() {
		r, want := Parse(one.Text)
		if got := Join(r.Words()); want != "" || got != one.Normal {
			t.Errorf("%s: %s %s; want %s", one.Text, got, want, one.Normal)
		}
	}
	for text, want := range wrongRules() {
		if r, got := Parse(text); got == "" || !strings.Contains(got, want) {
			t.Errorf("%q: %q, %q; want %q", text, r.Words(), got, want)
		}
	}
	for _, text := range unknownOptions() {
		if r, want := Parse(text); want != "" || Join(r.Words()) != text {
			t.Errorf("%s: %q, %s", text, Join(r.Words()), want)
		}
	}
}

func TestListed(t *testing.T) {
	for text, want := range map[string]string{
		"-j DROP":                        "1 false",
		"-s 10.0.0.1,10.0.0.0/8 -j DROP": "2 false",
		"-s 10.0.0.1,10.0.0.1 --dst 10.0.0.2,10.0.0.3/255.0.0.0,10.0.0.4": "6 false",
		"-s fd00::1,fd00::2/ffff::":                                       "2 false",
		"-s localhost -d 10.0.0.1,a":                                      "1 true",
		"-s 10/8":                                                         "1 true",
		"-m other --opt 5":                                                "1 true",
	} {
		r, wrong := Parse(text)
		n, more := r.Listed()
		if got := fmt.Sprint(n, " ", more); got != want || wrong != "" {
			t.Errorf("%s: %s, want %s; %s", text, got, want, wrong)
		}
	}
}

func TestMain(m *testing.M) { os.Exit(scratch.Main(m.Run)) }

// inNetns has the test run in a namespace without rules, with a variant of iptables.
func inNetns(t *testing.T, variant string) {
	t.Helper()
	_, err := exec.LookPath("iptables-" + variant)
	testkit.Need(t, "iptables-"+variant+" (iptables)", err == nil)
	testkit.Netns(t)
}

// restored gives a rule to iptables-restore, and returns whether it succeeded, and how many rules were added to the
// chain probe. It fails the test if anything else has changed.
func restored(t interface{ Fatalf(string, ...any) }, program, rule string) (ok bool, added int) {
	before := "*filter\n:INPUT ACCEPT\n:FORWARD ACCEPT\n:OUTPUT ACCEPT\n:other -\n:probe -\n"
	run := func(input, name string, args ...string) (string, error) {
		cmd := exec.Command(name, args...)
		cmd.Stdin = strings.NewReader(input)
		out, err := cmd.Output()
		return string(out), err
	}
	if _, err := run(before+"COMMIT\n", program+"-restore"); err != nil {
		t.Fatalf("%v", err)
	}
	_, err := run("*filter\n-A probe "+rule+"\nCOMMIT\n", program+"-restore", "--noflush", "-w", "10")
	after, _ := run("", program+"-save", "-t", "filter")
	for one := range strings.Lines(after) {
		one, _, _ = strings.Cut(one, " [")
		switch {
		case strings.HasPrefix(one, "-A probe"):
			added++
		case strings.HasPrefix(one, "#") || one == "COMMIT\n" || strings.Contains(before, one):
		default:
			t.Fatalf("%s has done this: %s", rule, one)
		}
	}
	if strings.Count(after, "\n:") != 5 {
		t.Fatalf("%s has removed chains: %s", rule, after)
	}
	return err == nil, added
}

// What is accepted adds its rules to the chain and does nothing else, and what is refused is no rule to iptables either, whatever
// is drawn. Options that tell iptables for which IP version a line is are refused anyway.
func TestRandomRules(t *testing.T) {
	word := rapid.SampledFrom([]string{
		"-j", "-jDROP", "DROP", "ACCEPT", "other", "--jump", "--jump=DROP", "--j", "-g", "LOG", "MARK", "--set-mark", "--log-prefix", "5", "0x5",
		"-m", "comment", "--comment", "--comm", "--comment=-h", `"a b"`, `"-h"`, `"\"" `, "mark", "--mark", "--mar", "mac", "limit", "--limit", "--limit-burst", "5/min", "socket",
		"-p", "tcp", "-ptcp", "udp", "6", "--dport", "--dp", "--sport", "--d", "--syn", "--tcp-flags", "SYN,ACK", "SYN", "--destination-port", "--destination-p",
		"-s", "10.0.0.1", "10.0.0.1,10.0.0.2", "--src", "--sour", "-d", "-i", "lo", "-ilo", "-f", "-fj", "-v", "-c", "1,2", "1",
		"!", "-", "--", "#", "-h", "--help", "--he", "-V", "--vers", "--version", "-fh", "-vV", "-hx", "--ver", "-4", "-6", "-n", "-x", "-k", "--nosuch", "--nosuch=1", "--h=1", `""`, "'a", `\`,
	})
	frame := rapid.SampledFrom([]string{"%s", "-m comment --comment %s", "-p tcp %s -j DROP", "-j other %s", "-j LOG %s", "-m mark %s", "-j DROP %s", "-s 10.0.0.1 %s"})
	for _, variant := range []string{"nft", "legacy"} {
		t.Run(variant, func(t *testing.T) {
			inNetns(t, variant)
			t.Cleanup(func() { _ = exec.Command("sh", "-c", "iptables-"+variant+" -F; iptables-"+variant+" -X").Run() })
			written, refused := 0, 0
			draw.Few(t, 40, func(rt *rapid.T) {
				text := fmt.Sprintf(frame.Draw(rt, "frame"), strings.Join(rapid.SliceOfN(word, 0, 5).Draw(rt, "words"), " "))
				r, want := Parse(text)
				if want == "" {
					n, more := r.Listed()
					if ok, added := restored(rt, "iptables-"+variant, Join(r.Words())); ok && added != n && !(more && added > n) || !ok && added > 0 {
						rt.Fatalf("%s is written as %s; success %v; %d rules, want %d", text, Join(r.Words()), ok, added, n)
					} else if ok {
						written++
					}
					return
				}
				refused++
				if ok, added := restored(rt, "iptables-"+variant, text); ok && added > 0 && strings.TrimSpace(text) != "" && !strings.Contains(want, "without -4") {
					rt.Fatalf("%s is refused (expected %s), but adds %d rules", text, want, added)
				}
			})
			if written == 0 || refused == 0 {
				t.Errorf("%d rules were written, %d refused", written, refused)
			}
			t.Logf("%d rules were written, %d refused", written, refused)
		})
	}
}

// The options of extensions.go are those of iptables: one that needs a value says so when it is the last word, and another one
// does not. Matches that this iptables does not have say that they cannot be loaded.
func TestExtensionsAreThoseOfIptables(t *testing.T) {
	inNetns(t, "nft")
	missing := func(program string, args ...string) (takes string) {
		out, err := exec.Command(program, append([]string{"-A", "OUTPUT"}, args...)...).CombinedOutput()
		switch text := string(out); {
		case strings.Contains(text, "requires an argument"):
			return "a value"
		case strings.Contains(text, "unknown option") || strings.Contains(text, "Unknown arg"):
			return "nothing: it is unknown"
		case strings.Contains(text, "Couldn't load") || strings.Contains(text, "does not exist") || strings.Contains(text, "No such file"):
			return "nothing: it is not there"
		case err == nil || strings.TrimSpace(text) != "":
			return "no value"
		}
		return "nothing: " + fmt.Sprint(err)
	}
	found, asked := 0, 0
	for flag, all := range map[string]map[string]*extension{"-m": matchExtensions(), "-j": targetExtensions()} {
		for name, e := range all {
			for i, o := range e.options {
				if testing.Short() && i > 0 {
					continue
				}
				asked++
				want := "a value"
				if o.values == 0 {
					want = "no value"
				}
				four, six := missing("iptables-nft", flag, name, "--"+o.name), want
				if four != want {
					six = missing("ip6tables-nft", flag, name, "--"+o.name)
				}
				if six == want {
					found++
				} else if four == "a value" || four == "no value" || six == "a value" || six == "no value" {
					t.Errorf("%s %s --%s takes %s, and in IPv6 %s; want %s", flag, name, o.name, four, six, want)
				} else {
					t.Logf("%s %s --%s takes %s, and in IPv6 %s", flag, name, o.name, four, six)
				}
			}
		}
	}
	if found < asked*9/10 {
		t.Errorf("iptables knows only %d of %d options", found, asked)
	}
	for _, g := range generals() {
		for _, name := range g.names {
			if got := missing("iptables-nft", "--"+name); g.values > 0 != (got == "a value") && g.allowed || strings.Contains(got, "unknown") {
				t.Errorf("--%s takes %s; want %d", name, got, g.values)
			}
		}
	}
}

// FuzzRules holds that a parsed rule is parsed in the same way again, and that its words are in the text.
func FuzzRules(f *testing.F) {
	for _, one := range cases.Spellings() {
		f.Add(one.Text)
	}
	for text := range wrongRules() {
		f.Add(text)
	}
	for _, text := range unknownOptions() {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		r, want := Parse(text)
		if want != "" {
			return
		}
		normal := Join(r.Words())
		again, want := Parse(normal)
		n, more := r.Listed()
		m, moreAgain := again.Listed()
		if want != "" || !slices.Equal(r.Words(), again.Words()) || n != m || more != moreAgain || n < 1 {
			t.Errorf("%q: %q, %q, %s; %d rules, %d", text, r.Words(), again.Words(), want, n, m)
		}
		for _, p := range r.parts {
			if g, known := generalOption(p.option); known && !g.allowed {
				t.Errorf("%q has %s", text, p.option)
			}
		}
		for _, word := range r.rest {
			if bad := readsAsForbidden(word); bad != "" {
				t.Errorf("%q has %s", text, bad)
			}
		}
	})
}
