package siege

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/vishvananda/netlink"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.fd.io/govpp/binapi/vlib"
	"go.uber.org/zap"
	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"

	"github.com/keyplane/keyplane/descriptors/vpp/conn"
	"github.com/keyplane/keyplane/internal/lists"
	"github.com/keyplane/keyplane/internal/scratch"
	"github.com/keyplane/keyplane/internal/testkit"
	"github.com/keyplane/keyplane/internal/vppsim"
	"github.com/keyplane/keyplane/northbound/rest/wire"
)

// A side is an agent with a store, a VPP and a network of its own.
type side struct {
	name string // of its label, and of its network namespaces
	*agent
	vpp    *process
	socket string // of VPP
	store  *testkit.Etcd

	client  *clientv3.Client
	browser http.Client // in the network of the agent
}

// startSide starts all processes. programs is a folder with agent and vppsim.
func startSide(t *testing.T, programs, name string) *side {
	t.Helper()
	dir := t.TempDir()
	s := &side{name: name, socket: filepath.Join(dir, "api.sock"), store: testkit.StartEtcd(t, testkit.EtcdOptions{})}
	testkit.Netns(t, s.networks()...)
	var err error
	for _, netns := range s.networks() {
		err = errors.Join(err, in(netns, loopbackUp))
	}
	var line *testkit.Proxy // the store is in the network of the test
	err = errors.Join(err, in(name, func() error { line = testkit.StartProxy(t, s.store.Addr); return nil }))
	if err != nil {
		t.Fatal(err)
	}
	s.dials(t)
	s.vpp = &process{program: programs + "/vppsim", args: []string{"-socket", s.socket}, dir: dir, netns: name, out: io.Discard}
	if err := s.vpp.start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.vpp.kill)
	s.agent = startAgentIn(t, name, programs+"/agent", name, map[string]string{
		"etcd.conf": "endpoints: [" + line.Addr + "]\n",
		// A VPP that lives is not given up, also on a busy machine.
		"govpp.conf": "binapi-socket-path: " + s.socket + "\nhealth-check-reply-timeout: 1m\n",
		// Many keys vanish while the agent does not look.
		"orchestrator.conf": "grace-time: 1s\n",
	})
	return s
}

// loopbackUp brings the loopback up.
func loopbackUp() error {
	lo, err := netlink.LinkByName("lo")
	if err != nil {
		return err
	}
	return netlink.LinkSetUp(lo)
}

// networks are the network namespaces: that of the agent, and those that values name.
func (s *side) networks() []string { return []string{s.name, s.name + "-red", s.name + "-blue"} }

// dials prepares the clients of the store and of the agent.
func (s *side) dials(t *testing.T) {
	t.Helper()
	soon := grpc.WithConnectParams(grpc.ConnectParams{Backoff: backoff.Config{BaseDelay: 20 * time.Millisecond, Multiplier: 1, MaxDelay: 20 * time.Millisecond}, MinConnectTimeout: time.Second})
	client, err := clientv3.New(clientv3.Config{Endpoints: []string{s.store.Endpoint}, Logger: zap.NewNop(), DialOptions: []grpc.DialOption{soon}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { client.Close() })
	s.client = client
	dial := func(ctx context.Context, network, addr string) (c net.Conn, err error) {
		err = in(s.name, func() error {
			c, err = (&net.Dialer{}).DialContext(ctx, network, addr)
			return err
		})
		return c, err
	}
	s.browser = http.Client{Timeout: 20 * time.Second, Transport: &http.Transport{DisableKeepAlives: true, DialContext: dial}}
}

// An edit is a key and its new value; the empty value removes it.
type edit = item

// commit makes edits in one transaction, also if the store is killed meanwhile.
func (s *side) commit(ctx context.Context, edits []edit) error {
	var ops []clientv3.Op
	for _, e := range edits {
		if e.value == "" {
			ops = append(ops, clientv3.OpDelete(rootOf(s.name)+e.key))
		} else {
			ops = append(ops, clientv3.OpPut(rootOf(s.name)+e.key, s.own(e.value)))
		}
	}
	return poll(ctx, func() error {
		// A request whose connection ends may wait for ever.
		soon, cancel := context.WithTimeout(ctx, 5*time.Second)
		defer cancel()
		_, err := s.client.Txn(soon).Then(ops...).Commit()
		return err
	})
}

// own is a value in the network namespaces of this side.
func (s *side) own(value string) string {
	return strings.NewReplacer(`"reference":"red"`, `"reference":"`+s.name+`-red"`, `"reference":"blue"`, `"reference":"`+s.name+`-blue"`).Replace(value)
}

// An account is what a side has, by subject, in a form that sides with the same values share.
type account map[string]string

// settled are the states of values that wait for nothing but other values.
var settled = []string{"CONFIGURED", "PENDING", "INVALID", "OBTAINED", "DISCOVERED"}

// states are the states of all values as the agent tells them, if all are settled.
func (s *side) states(ctx context.Context) (account, error) {
	var values []wire.BaseValueStatus
	if err := s.read(ctx, "/scheduler/status", &values); err != nil {
		return nil, err
	}
	out := account{}
	for _, v := range values {
		for _, one := range append(v.DerivedValues, v.Value) {
			if !slices.Contains(settled, one.State) {
				return nil, fmt.Errorf("%s is %s: %s", one.Key, one.State, one.Error)
			}
			if !isOwn(one) {
				out[one.Key] = s.shared(fmt.Sprint(one.State, " ", one.Error, " ", one.Details))
			}
		}
	}
	return out, nil
}

// isOwn tells values that VPP and the kernel make by themselves, depending on time, on random MAC
// addresses or on the order of other values. What VPP always has, also where nobody declares it, is known once it was
// read: after a restart, but not yet where the declared value was removed.
func isOwn(v wire.ValueStatus) bool {
	if strings.HasPrefix(v.Key, "config/vpp/v2/vrf-table/id/4294967295/") {
		return true
	}
	own := regexp.MustCompile(`^config/vpp/v2/(arp|route)/|/address/fe80::|^config/vpp/(v2/proxyarp-global|ipfix/)`)
	return v.State == "OBTAINED" && own.MatchString(v.Key)
}

// shared is a text without the name of the side, which is also in the tags of VPP.
func (s *side) shared(text string) string {
	return regexp.MustCompile(`\b`+s.name+`(-|/|\.[0-9a-f]{16}\b)`).ReplaceAllString(text, "")
}

// actual is what VPP and the kernel have, and how it differs from what the agent has declared.
func (s *side) actual(ctx context.Context) (account, error) {
	out := account{}
	var drift wire.Drift
	err := s.read(ctx, "/drift", &drift)
	if err != nil {
		return nil, err
	}
	for _, v := range drift.Values {
		out["drift of "+v.Key] = fmt.Sprint(v.Kind, " ", v.State)
	}
	if out["not read back"] = fmt.Sprint(drift.NotReadBack); len(drift.NotReadBack) > 0 {
		return nil, errors.New(out["not read back"])
	}
	if out["pages of VPP"], err = s.pages(ctx); err != nil {
		return nil, err
	}
	for i, netns := range s.networks() {
		network, err := networkOf(ctx, netns)
		if err != nil {
			return nil, err
		}
		out[fmt.Sprint("network ", i)] = s.shared(network)
	}
	return out, nil
}

// read reads a page of the agent in JSON.
func (s *side) read(ctx context.Context, path string, to any) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+s.web+path, http.NoBody)
	if err != nil {
		return err
	}
	answer, err := s.browser.Do(request)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err == nil && answer.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s: %s", answer.Status, text)
	}
	if err != nil {
		return err
	}
	return json.Unmarshal(text, to)
}

// morePages are those of VPP's services.
var morePages = []string{
	"show abf", "show acl-plugin", "show dns", "show flowprobe feature", "show flowprobe params", "show ip punt redirect",
	"show ipfix exporter", "show ipsec sa", "show ipsec spd", "show ipsec spd bindings", "show ipsec tunnel", "show nat44 static mappings",
	"show nat44 vrf tables", "show punt", "show sr encaps source addr", "show sr localsids", "show stn rules", "show wireguard peer",
}

// pages are all pages of VPP.
func (s *side) pages(ctx context.Context) (string, error) {
	c, err := conn.Dial(ctx, s.socket, "kills")
	if err != nil {
		return "", err
	}
	ended := make(chan struct{})
	go func() { _ = c.Run(ctx); close(ended) }() // the calls return the reason
	defer func() { c.Close(context.Canceled); <-ended }()
	out := vppsim.Normalized(func(page string) string {
		var reply vlib.CliInbandReply
		err = errors.Join(err, c.Call(ctx, &vlib.CliInband{Cmd: page}, &reply))
		return s.shared(reply.Reply)
	}, morePages...)
	return ofDeleted.ReplaceAllString(out, ""), err
}

// ofDeleted are the settings of IPv6 autoconfiguration that VPP keeps of a deleted interface. The agent ends
// them when the index has an interface again: an agent that was killed does not know of them.
var ofDeleted = regexp.MustCompile(`(?m)^DELETED \(\d+\) autoconfig .*\n`)

// byChance are parts of the account of a network that differ between equal ones: MAC addresses,
// and of iptables-save counters, comments, and what the agent makes of its label and its owner.
var byChance = regexp.MustCompile(`, [0-9a-f]{2}(:[0-9a-f]{2}){5}|, fe80::[0-9a-f:]+/64| \[\d+:\d+\]|(?m:^# .*\n)|(kp-|#)[0-9a-f]{16}`)

// empty are the chains of iptables that a table has from its first use on.
var empty = regexp.MustCompile(`(?m)^(\*(filter|nat)|:[A-Z]+ ACCEPT|COMMIT)\n`)

// networkOf is what a network namespace has.
func networkOf(ctx context.Context, netns string) (string, error) {
	var out bytes.Buffer
	if err := scratch.Show(&out, netns); err != nil {
		return "", err
	}
	err := in(netns, func() error {
		for _, command := range []string{"ip -6 route", "iptables-save", "ip6tables-save"} {
			words := strings.Fields(command)
			text, err := exec.CommandContext(ctx, words[0], words[1:]...).Output()
			if err != nil {
				return fmt.Errorf("%s: %w", command, err)
			}
			out.Write(text)
		}
		return nil
	})
	lines := strings.Split(empty.ReplaceAllString(byChance.ReplaceAllString(out.String(), ""), ""), "\n")
	slices.Sort(lines)
	return strings.Join(lines, "\n"), err
}

// differs returns an error that names what one account has and the other lacks, or nil.
func (a account) differs(from account) error {
	subjects := maps.Clone(a)
	maps.Copy(subjects, from)
	var errs []error
	for _, subject := range slices.Sorted(maps.Keys(subjects)) {
		if a[subject] == from[subject] {
			continue
		}
		errs = append(errs, fmt.Errorf("%s differs", subject)) // also if only the number of equal lines does
		is, want := strings.Split(a[subject], "\n"), strings.Split(from[subject], "\n")
		for _, line := range lists.Without(is, want) {
			errs = append(errs, fmt.Errorf("\tit has, and ought not to: %s", line))
		}
		for _, line := range lists.Without(want, is) {
			errs = append(errs, fmt.Errorf("\tit lacks: %s", line))
		}
	}
	return errors.Join(errs...)
}
