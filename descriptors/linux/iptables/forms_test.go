package iptables

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/keyplane/keyplane/descriptors/linux/netns"
	"github.com/keyplane/keyplane/internal/scratch"
	"github.com/keyplane/keyplane/internal/testkit"
)

// A form is a way to write a rule that the kernel shows in another way, or in the same.
type form struct {
	family string // "4", "6", or "46" for both
	table  string
	rule   string
}

// forms are the ways in which people write rules: what the manual pages of iptables and iptables-extensions show.
func forms() []form {
	return []form{
		// Addresses.
		{"4", "FILTER", `-s 10.0.0.1,10.0.0.2,10.0.1.0/24 -j ACCEPT`},
		{"4", "FILTER", `-s 10.0.0.0/255.255.0.0 -d 192.0.2.7/32 -j DROP`},
		{"4", "FILTER", `! -s 10.1.2.3/16 -j RETURN`},
		{"4", "FILTER", `-s two.example -j ACCEPT`},
		{"4", "FILTER", `-d localhost -j ACCEPT`},
		{"4", "FILTER", `--source 0.0.0.0/0 --destination 10.0.0.0/8 --jump ACCEPT`},
		{"4", "FILTER", `-m iprange --src-range 10.0.0.5-10.0.0.9 -j DROP`},
		{"4", "FILTER", `-m addrtype --dst-type LOCAL,BROADCAST -j ACCEPT`},
		{"6", "FILTER", `-s fd00::1,FD00:0:0::2 -j ACCEPT`},
		{"6", "FILTER", `-s two.example -j DROP`},
		{"6", "FILTER", `! -d fd00::/8 -j DROP`},
		{"6", "FILTER", `-d fd00:0:0:0:0:0:0:1/ffff:ffff:: -j ACCEPT`},
		// Interfaces.
		{"46", "FILTER", `-i eth+ -j ACCEPT`},
		{"46", "FILTER", `! -i lo ! -o veth7 -j DROP`},
		// Protocols and ports.
		{"46", "FILTER", `-p 89 -j ACCEPT`},
		{"46", "FILTER", `-p all -j RETURN`},
		{"46", "FILTER", `! -p udp -j RETURN`},
		{"46", "FILTER", `-p TCP --dport ssh -j ACCEPT`},
		{"46", "FILTER", `-p tcp --sport 1024:65535 ! --dport 80 -j ACCEPT`},
		{"46", "FILTER", `-p udp --dport :1023 -j DROP`},
		{"46", "FILTER", `-p tcp -m multiport --dports 22,80,443,8000:8080 -j ACCEPT`},
		{"46", "FILTER", `-p udp -m multiport ! --sports 53,123 -j DROP`},
		{"46", "FILTER", `-p tcp --syn -j ACCEPT`},
		{"46", "FILTER", `-p tcp ! --syn -m conntrack --ctstate NEW -j DROP`},
		{"46", "FILTER", `-p tcp --tcp-flags SYN,RST,ACK,FIN SYN -j ACCEPT`},
		{"46", "FILTER", `-p tcp --tcp-flags ALL NONE -j DROP`},
		{"46", "FILTER", `-p sctp --dport 2905 -j ACCEPT`},
		{"4", "FILTER", `-p icmp --icmp-type echo-request -j ACCEPT`},
		{"4", "FILTER", `-p icmp --icmp-type 3/4 -j ACCEPT`},
		{"4", "FILTER", `-p icmp --icmp-type any -j ACCEPT`},
		{"4", "FILTER", `-p icmp -m icmp ! --icmp-type timestamp-request -j DROP`},
		{"6", "FILTER", `-p icmpv6 --icmpv6-type neighbour-solicitation -j ACCEPT`},
		{"6", "FILTER", `-p ipv6-icmp --icmpv6-type 128 -j ACCEPT`},
		{"4", "FILTER", `-f -j DROP`},
		// States, marks and limits.
		{"46", "FILTER", `-m state --state ESTABLISHED,RELATED -j ACCEPT`},
		{"46", "FILTER", `-m conntrack --ctstate RELATED,ESTABLISHED,NEW -j ACCEPT`},
		{"46", "FILTER", `-m conntrack ! --ctstate INVALID -j RETURN`},
		{"46", "FILTER", `-m mark --mark 7 -j ACCEPT`},
		{"46", "FILTER", `-m mark ! --mark 0x10/0xf0 -j DROP`},
		{"46", "FILTER", `-m connmark --mark 0x1 -j ACCEPT`},
		{"46", "FILTER", `-m limit --limit 5/min --limit-burst 7 -j ACCEPT`},
		{"46", "FILTER", `-m limit --limit 3/hour -j LOG`},
		{"46", "FILTER", `-p tcp --dport 22 -m hashlimit --hashlimit-upto 10/minute --hashlimit-burst 20 --hashlimit-mode srcip --hashlimit-name ssh -j ACCEPT`},
		{"46", "FILTER", `-p tcp --dport 80 -m connlimit --connlimit-above 20 -j DROP`},
		{"46", "FILTER", `-m recent --name bad --update --seconds 60 --hitcount 3 -j DROP`},
		{"46", "FILTER", `-m length --length 0:1500 -j ACCEPT`},
		{"4", "FILTER", `-m ttl --ttl-lt 5 -j DROP`},
		{"6", "FILTER", `-m hl --hl-eq 255 -j ACCEPT`},
		{"46", "FILTER", `-m statistic --mode nth --every 3 --packet 0 -j ACCEPT`},
		{"46", "FILTER", `-m statistic --mode random --probability 0.5 -j ACCEPT`},
		{"46", "FILTER", `-m time --timestart 08:00 --timestop 18:30 --weekdays Mon,Tue,Fri -j ACCEPT`},
		{"46", "FILTER", `-m owner --uid-owner root -j ACCEPT`},
		{"46", "FILTER", `-m owner ! --gid-owner 100-200 -j DROP`},
		{"46", "FILTER", `-m mac --mac-source 02:FE:00:00:00:0a -j ACCEPT`},
		{"46", "FILTER", `-m pkttype --pkt-type multicast -j DROP`},
		{"46", "FILTER", `-m string --string "GET /" --algo bm -j DROP`},
		{"4", "FILTER", `-m dscp --dscp-class EF -j ACCEPT`},
		{"46", "FILTER", `-m tcp -p tcp --tcp-option 5 -j DROP`},
		// Texts.
		{"46", "FILTER", `-m comment --comment "it says \"no\", and \\ too" -j DROP`},
		{"46", "FILTER", `-m comment --comment word -j ACCEPT`},
		{"46", "FILTER", `-j LOG --log-prefix "dropped: " --log-level warning --log-uid`},
		// Targets.
		{"46", "FILTER", `-p tcp -j REJECT --reject-with tcp-reset`},
		{"4", "FILTER", `-j REJECT`},
		{"4", "FILTER", `-j REJECT --reject-with icmp-host-prohibited`},
		{"6", "FILTER", `-j REJECT --reject-with adm-prohibited`},
		{"46", "FILTER", `-j NFLOG --nflog-group 5 --nflog-prefix "seen"`},
		{"46", "FILTER", `-j NFQUEUE --queue-num 3 --queue-bypass`},
		{"46", "FILTER", `-p udp`},
		{"46", "MANGLE", `-p tcp -j MARK --set-mark 5`},
		{"46", "MANGLE", `-j MARK --set-xmark 0x10/0xff`},
		{"46", "MANGLE", `-j CONNMARK --save-mark`},
		{"46", "MANGLE", `-p tcp --syn -j TCPMSS --clamp-mss-to-pmtu`},
		{"46", "MANGLE", `-j DSCP --set-dscp-class AF41`},
		{"4", "MANGLE", `-j TTL --ttl-set 64`},
		{"6", "MANGLE", `-j HL --hl-dec 1`},
		{"4", "NAT", `-p tcp --dport 80 -j DNAT --to-destination 10.0.0.7:8080`},
		{"4", "NAT", `-o eth0 -j SNAT --to-source 192.0.2.1-192.0.2.9`},
		{"46", "NAT", `-o eth0 -j MASQUERADE`},
		{"46", "NAT", `-p udp -j MASQUERADE --to-ports 1024-2048 --random`},
		{"46", "NAT", `-p tcp --dport 80 -j REDIRECT --to-ports 3128`},
		{"4", "NAT", `-j NETMAP --to 10.5.0.0/16`},
		{"6", "NAT", `-p tcp -d fd00::1 --dport 80 -j DNAT --to-destination [fd00::7]:8080`},
		{"46", "RAW", `-p udp --dport 53 -j CT --notrack`},
		{"46", "RAW", `-j NOTRACK`},
	}
}

// leastForms is how many of the forms a usual kernel knows, with each of its variants.
const leastForms = 80

// writes counts the batches that a backend applies.
type writes struct {
	backend
	n *int
}

func (w writes) apply(ctx context.Context, space *netns.Space, b *batch) error {
	*w.n++
	return w.backend.apply(ctx, space, b)
}

// Each form of a rule is written once: no later look, of this process or the next one, writes it again, which would
// reset its counters. A change of its chain by others is seen.
func TestForms(t *testing.T) {
	withHosts(t, "127.0.0.1 localhost\n::1 localhost\n192.0.2.1 two.example\n192.0.2.2 two.example\nfd00::a two.example\nfd00::b two.example\n")
	each(t, func(t *testing.T) {
		h := inRed(t)
		written := 0
		h.tool = writes{h.tool, &written}
		values := h.createForms(t)
		if h.recheck() { // seals
			t.Error("what was just written counts as changed")
		}
		h.count(values)
		before := h.counters()

		written = 0
		if h.recheck() {
			t.Error("a second look finds a change")
		}
		h.expectForms(values, true)
		next := handlerOf(h.Spaces, "vpp1", "")
		next.tool = h.tool
		after := &host{t: t, handler: next, space: h.space, name: h.name}
		after.expectForms(values, true)
		if after.recheck() {
			t.Error("the next process finds a change")
		}
		if counters := h.counters(); written != 0 || counters != before {
			t.Errorf("looks have written %d batches; the counters were\n%s\nand are\n%s", written, before, counters)
		}

		h.appendToAll(values)
		if !h.recheck() {
			t.Error("a change by others is not noticed")
		}
		h.expectForms(values, false)
	})
}

// createForms creates a chain with each form, which the kernel knows, and returns the values.
func (h *host) createForms(t *testing.T) (values []desired) {
	t.Helper()
	var all []desired
	for i, f := range forms() {
		for _, family := range f.family {
			v := chainIn(t, fmt.Sprintf(`name: "f%d-%c" protocol: IPV%c table: %s chain_type: CUSTOM chain_name: "f%d" rules: %q`, i, family, family, f.table, i, f.rule))
			if err := h.validate("", v); err != nil {
				t.Errorf("%s is refused: %v", f.rule, err)
			}
			v, _ = normalize("", v)
			all = append(all, desired{Key: "config/linux/iptables/v2/rulechain/" + v.GetName(), Value: v})
		}
	}
	for i, one := range h.createAll(t.Context(), all) {
		v := all[i].Value
		switch {
		case one.Err == nil:
			values = append(values, all[i])
		case h.knows(v.GetRules()[0], tableOf(v)):
			t.Errorf("%s: %v", v.GetRules()[0], one.Err)
		default:
			t.Logf("this kernel does not know %s: %v", v.GetRules()[0], one.Err)
		}
	}
	testkit.Need(t, fmt.Sprintf("a kernel with the modules of %d rules (it knows %d of %d)", leastForms, len(values), len(all)), len(values) >= leastForms)
	return values
}

// knows reports whether iptables takes a rule that the agent has failed to write.
func (h *host) knows(rule string, table table) bool {
	cmd := exec.Command("ip", "netns", "exec", h.name, table.program()+"-restore", "--noflush", "--test")
	cmd.Stdin = strings.NewReader("*" + table.name + "\n:probe - [0:0]\n-A probe " + rule + "\nCOMMIT\n")
	return cmd.Run() == nil
}

// expectForms expects that Retrieve finds each value as it is declared, or that it finds none so.
func (h *host) expectForms(values []desired, intact bool) {
	h.t.Helper()
	d, left := h.descriptor(), map[string]desired{}
	for _, v := range values {
		left[v.Key] = v
	}
	for f, err := range d.Retrieve(h.t.Context(), values) {
		if err != nil {
			h.t.Fatal(err)
		}
		if f.Learned != nil {
			f.Learned()
		}
		if f.Value == nil {
			continue
		}
		v, known := left[f.Key]
		delete(left, f.Key)
		if !known || d.Equivalent(f.Key, f.Value, v.Value) != intact {
			h.t.Errorf("%s counts as intact: %v; declared %v, found %v", f.Key, !intact, v.Value.GetRules(), f.Value.GetRules())
		}
	}
	for key := range left {
		h.t.Errorf("%s is not found", key)
	}
}

// appendToAll appends a rule to each chain, as somebody else does.
func (h *host) appendToAll(values []desired) {
	h.t.Helper()
	batches := map[table]*strings.Builder{}
	for _, v := range values {
		t := tableOf(v.Value)
		if batches[t] == nil {
			batches[t] = &strings.Builder{}
			fmt.Fprintf(batches[t], "*%s\n", t.name)
		}
		fmt.Fprintf(batches[t], "-A %s -j RETURN\n", v.Value.GetChainName())
	}
	for t, b := range batches {
		cmd := exec.Command("ip", "netns", "exec", h.name, t.program()+"-restore", "--noflush")
		cmd.Stdin = strings.NewReader(b.String() + "COMMIT\n")
		if out, err := cmd.CombinedOutput(); err != nil {
			h.t.Fatalf("%v: %s", err, out)
		}
	}
}

// count has a chain with a rule without target count a packet.
func (h *host) count(values []desired) {
	h.t.Helper()
	for _, v := range values {
		if tableOf(v.Value) == (table{false, "filter"}) && !strings.Contains(v.Value.GetRules()[0], "-j ") {
			h.do("iptables -A OUTPUT -j " + v.Value.GetChainName())
		}
	}
	h.do("ip link set lo up")
	err := scratch.InNetns(h.name, func() error {
		conn, err := net.Dial("udp", "127.0.0.1:9")
		if err != nil {
			return err
		}
		defer conn.Close()
		_, err = conn.Write([]byte("counted"))
		return err
	})
	if err != nil {
		h.t.Fatal(err)
	}
	if !strings.Contains(h.counters(), "[1:35] -A f") {
		h.t.Error("no rule has counted the packet")
	}
}

// counters returns the rules of both filter tables with their counters.
func (h *host) counters() string {
	h.t.Helper()
	var b strings.Builder
	for one := range strings.Lines(h.do("iptables-save -c -t filter") + h.do("ip6tables-save -c -t filter")) {
		if !strings.HasPrefix(one, "#") { // the time
			b.WriteString(one)
		}
	}
	return b.String()
}

// withHosts gives this mount namespace another /etc/hosts, until the test ends.
func withHosts(t *testing.T, text string) {
	t.Helper()
	testkit.Netns(t) // only in a mount namespace of its own
	path := filepath.Join(t.TempDir(), "hosts")
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := unix.Mount(path, "/etc/hosts", "", unix.MS_BIND, ""); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := unix.Unmount("/etc/hosts", 0); err != nil {
			t.Error(err)
		}
	})
}
