package iptables

import (
	"errors"
	"fmt"
	"os/exec"
	"strconv"
	"strings"
	"testing"

	"github.com/google/nftables"
	"golang.org/x/sys/unix"

	"github.com/keyplane/keyplane/descriptors/linux/internal/kernel"
	"github.com/keyplane/keyplane/internal/scratch"
	"github.com/keyplane/keyplane/proto/ligato/linux/iptables"
	"github.com/keyplane/keyplane/scheduler"
	"github.com/keyplane/keyplane/scheduler/conformance"
)

// withoutPrograms returns a host without iptables.
func withoutPrograms(t testing.TB) *host {
	t.Helper()
	h := inRed(t)
	h.tool = netfilter{}
	return h
}

func TestNetfilterConforms(t *testing.T) {
	c := func(text string) *iptables.RuleChain { return chainIn(t, text) }
	in := func(more string) *iptables.RuleChain { return c(`name: "in" chain_type: INPUT ` + more) }
	var last *host
	conformance.Run(t, conformance.Suite[*iptables.RuleChain, Meta]{
		New: func(t *testing.T) scheduler.Descriptor[*iptables.RuleChain, Meta] {
			last = withoutPrograms(t)
			return last.descriptor()
		},
		Values: []desired{
			{Value: in(`default_policy: DROP rules: "-i lo -j ACCEPT" rules: "-j DROP"`)},
			{Value: c(`name: "in6" protocol: IPV6 chain_type: INPUT rules: "-s fd00::/8 -j DROP"`)},
			{Value: c(`name: "own" table: MANGLE chain_type: CUSTOM chain_name: "own" rules: "-j MARK --set-mark 7"`)},
		},
		Changes: []conformance.Change[*iptables.RuleChain]{
			{Name: "rules", From: in(`rules: "-j DROP"`), To: in(`rules: "-s 10.0.0.1 -j ACCEPT" rules: "-j DROP"`), How: conformance.Updated},
			{Name: "policy", From: in(`default_policy: DROP`), To: in(``), How: conformance.Updated},
			{Name: "table", From: in(``), To: in(`table: MANGLE`), How: conformance.Recreated},
			{Name: "blanks", From: in(`rules: "-j DROP"`), To: in(`rules: " -j  DROP"`), How: conformance.Unchanged},
		},
		Break:   func(*testing.T) { last.tool = broken{last.tool} },
		Invalid: []conformance.Invalid[*iptables.RuleChain]{{Name: "no name", Value: c(`chain_type: INPUT`), Fields: []string{"name"}}},
	})
}

// Each kind of chain lives without iptables.
func TestNetfilterLifecycles(t *testing.T) {
	for _, protocol := range []string{"IPV4", "IPV6"} {
		for table := range iptables.RuleChain_Table_name {
			for _, kind := range append(chainsOf(iptables.RuleChain_Table(table)), "CUSTOM") {
				where := fmt.Sprintf(`name: "c" protocol: %s table: %s chain_type: %s `, protocol, iptables.RuleChain_Table(table), kind)
				if kind == "CUSTOM" {
					where += `chain_name: "mine" `
				}
				t.Run(fmt.Sprint(protocol, iptables.RuleChain_Table(table), kind), func(t *testing.T) {
					h := withoutPrograms(t)
					b := h.bench()
					long := `rules: "-m comment --comment \"` + strings.Repeat("long ", 50) + `\" -j ACCEPT"`
					first := chainIn(t, where+`rules: "-p tcp --dport 22 -j ACCEPT" rules: "-p udp -j RETURN"`)
					b.Create(t, first)
					for range 2 { // before and after the seal
						if h.recheck() {
							t.Error("the agent's own chain counts as changed")
						}
					}
					b.Delete(t, first)
					b.Lifecycle(t, first, chainIn(t, where), chainIn(t, where+`rules: "-p udp  -j RETURN"`+long))
				})
			}
		}
	}
}

// What another program changes is noticed, and a foreign chain is left alone.
func TestNetfilterChanged(t *testing.T) {
	for name, change := range map[string]func(c *nftables.Conn, all map[chainID]*nftChain, at *nftChain){
		"rule removed": func(c *nftables.Conn, _ map[chainID]*nftChain, at *nftChain) {
			_ = c.DelRule(&nftables.Rule{Table: at.Table, Chain: at.Chain, Handle: at.rules[1].handle})
		},
		"flushed": func(c *nftables.Conn, _ map[chainID]*nftChain, at *nftChain) { c.FlushChain(at.Chain) },
		"jump removed": func(c *nftables.Conn, all map[chainID]*nftChain, _ *nftChain) {
			c.FlushChain(all[chainID{table{false, "filter"}, "INPUT"}].Chain)
		},
		"table removed": func(c *nftables.Conn, _ map[chainID]*nftChain, at *nftChain) { c.DelTable(at.Table) },
	} {
		t.Run(name, func(t *testing.T) {
			h := withoutPrograms(t)
			b := h.bench()
			v := chainIn(t, `name: "in" chain_type: INPUT default_policy: DROP rules: "-j ACCEPT" rules: "-j DROP"`)
			b.Create(t, v)
			h.recheck()
			conn, err := dial(h.space)
			if err != nil {
				t.Fatal(err)
			}
			all, err := readState(conn, false)
			if err != nil {
				t.Fatal(err)
			}
			change(conn, all, all[chainID{table{false, "filter"}, chainOf("vpp1", v)}])
			if err := errors.Join(conn.Flush(), conn.CloseLasting()); err != nil {
				t.Fatal(err)
			}
			if !h.recheck() {
				t.Error("the change is not noticed")
			}
			h.repair(b.D, b.Key(t, v), v)
			b.Expect(t, v)
			if h.recheck() {
				t.Error("the repaired chain counts as changed")
			}
		})
	}
}

// A rule that needs iptables, or a chain that does not exist, is refused; nothing is changed.
func TestNetfilterRefuses(t *testing.T) {
	h := withoutPrograms(t)
	for _, rule := range []string{
		"-m recent --set -j DROP", "-j NOSUCH", "-j TARPIT", "-s example.com -j DROP", "-p tcp --dport http -j DROP", "-p tcp --syn -j DROP",
		"-s fd00::1 -j DROP", "-j SNAT", "-m conntrack ! --ctstate WRONG -j DROP",
	} {
		v := chainIn(t, `name: "in" chain_type: INPUT`)
		v.Rules = []string{"-j ACCEPT", rule}
		_, err := h.create(t.Context(), "key", v)
		if err == nil {
			t.Errorf("%s was accepted", rule)
		} else if rule != "-j NOSUCH" && rule != "-j TARPIT" && !strings.HasPrefix(err.Error(), "rules[1]: nftables: ") {
			t.Errorf("%s: %v", rule, err)
		}
	}
	h.bench().Expect(t)
}

// Rules meet the packets that they are meant for. ICMP passes, so that a refusal arrives: it does if the rule before
// ACCEPT fits.
func TestNetfilterPackets(t *testing.T) {
	h := withoutPrograms(t)
	if out, err := exec.Command("ip", "-n", h.name, "link", "set", "lo", "up").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	server, client := udpSocket(t, h.name), udpSocket(t, h.name)
	at := &unix.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}}
	if err := unix.Bind(server, at); err != nil {
		t.Fatal(err)
	}
	bound, err := unix.Getsockname(server)
	if err != nil {
		t.Fatal(err)
	}
	number := strconv.Itoa(bound.(*unix.SockaddrInet4).Port)
	if err := unix.Connect(client, bound); err != nil {
		t.Fatal(err)
	}
	b := h.bench()
	last := chainIn(t, `name: "in" chain_type: INPUT`)
	b.Create(t, last)
	for rule, fits := range map[string]bool{
		"":                                       true,
		"-p udp --dport PORT":                    true,
		"-p tcp --dport PORT":                    false,
		"! -p tcp":                               true,
		"-p udp -m udp ! --dport PORT":           false,
		"-p udp --dport 1:65535":                 true,
		"-p udp --dport :1":                      false,
		"-p udp -m multiport --dports 1,PORT":    true,
		"-p udp -m multiport ! --dports 1,PORT":  false,
		"-s 127.0.0.0/8 -d 127.0.0.1":            true,
		"! -s 127.0.0.0/9":                       false,
		"-s 128.0.0.0/1":                         false,
		"-i lo":                                  true,
		"-i l+":                                  true,
		"-i l":                                   false,
		"! -i lo":                                false,
		"-m conntrack --ctstate NEW,ESTABLISHED": true,
		"-m conntrack --ctstate INVALID":         false,
		"-m state ! --state INVALID":             true,
		"-m mark --mark 0":                       true,
		"-m mark --mark 0x1/0xff":                false,
		`-m comment --comment "a -j DROP"`:       true,
	} {
		next := chainIn(t, `name: "in" chain_type: INPUT`)
		next.Rules = []string{"-p icmp -j ACCEPT", strings.ReplaceAll(rule, "PORT", number) + " -j REJECT", "-j ACCEPT"}
		b.Change(t, last, next)
		last = next
		if got := refused(t, client, server); got != fits {
			t.Errorf("%q: refused %v, want %v", rule, got, fits)
		}
	}
}

// udpSocket opens a socket in a namespace.
func udpSocket(t *testing.T, name string) (fd int) {
	t.Helper()
	err := scratch.InNetns(name, func() (err error) {
		fd, err = unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = unix.Close(fd) })
	return fd
}

// refused sends a datagram from client to server. Either the server receives it, or the client
// receives an ICMP error; refused waits for one of them.
func refused(t *testing.T, client, server int) bool {
	t.Helper()
	if _, err := unix.Write(client, []byte("x")); err != nil {
		t.Fatal(err)
	}
	both := []unix.PollFd{{Fd: int32(client), Events: unix.POLLIN}, {Fd: int32(server), Events: unix.POLLIN}}
	for {
		_, err := unix.Poll(both, -1)
		if err == nil {
			break
		}
		if !errors.Is(err, unix.EINTR) {
			t.Fatal(err)
		}
	}
	at := client
	if both[0].Revents == 0 {
		at = server
	}
	_, err := unix.Read(at, make([]byte, 8))
	if (at == client) != errors.Is(err, unix.ECONNREFUSED) {
		t.Fatalf("client %v, server %v: %v", both[0], both[1], err)
	}
	return at == client
}

// Events of the tables of iptables and of those of nftables concern the same chains.
func TestConcerns(t *testing.T) {
	w := watched{chains: map[string]record{"key": {chainID: chainID{table{false, "filter"}, "mine"}}}}
	for event, want := range map[kernel.RuleEvent]bool{
		{Table: "filter", Chain: "mine"}:             true,
		{Table: "keyplane-filter", Chain: "mine"}:    true,
		{Table: "filter", Chain: "INPUT"}:            true,
		{Table: "filter"}:                            true,
		{Table: "filter", Chain: "KUBE-SERVICES"}:    false,
		{Table: "filter", Chain: "new", Used: true}:  true,
		{Table: "nat", Chain: "new", Used: true}:     false,
		{Table: "nat", Chain: "mine"}:                false,
		{Table: "filter", Chain: "mine", IPv6: true}: false,
	} {
		if got := w.concerns(event); got != want {
			t.Errorf("%+v: %v", event, got)
		}
	}
}
