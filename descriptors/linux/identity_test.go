package linux_test

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/keyplane/keyplane/internal/testkit"
	"github.com/keyplane/keyplane/scheduler"
	"github.com/keyplane/keyplane/scheduler/drift"
)

// spelled are addresses in forms in which the kernel does not answer.
const spelled = `"ip_addresses":["10.$N.0.1/24","10.$N.1.1/32","10.$N.2.0/31","FD00:$N:0::1/64","fd00:$N:1::0001/128","FE80::$N:1/64","fd00:$N:2::10.1.2.3/96"]`

// spelledOnLink are routes and neighbours in such forms, which need a gateway or not.
var (
	spelledOnLink = []string{
		`config/linux/l3/v2/route/10.1$N.0.0/16/if$N {"outgoing_interface":"if$N","dst_network":"10.1$N.7.7/16"}`,
		`config/linux/l3/v2/route/10.$N.9.9/32/if$N {"outgoing_interface":"if$N","dst_network":"10.$N.9.9/32","scope":"LINK","metric":7}`,
		`config/linux/l3/v2/route/fd00:$N:a::9/128/if$N {"outgoing_interface":"if$N","dst_network":"fd00:$N:a::9/128","scope":"HOST"}`,
		`config/linux/l3/v2/route/fd00:$N:b::/64/if$N {"outgoing_interface":"if$N","dst_network":"FD00:$N:b::7/64","gw_addr":"::"}`,
		`config/linux/l3/v2/arp/if$N/FD00:$N::9 {"interface":"if$N","ip_address":"FD00:$N::9","hw_address":"02-FE-00-00-00-09"}`,
		`config/linux/l3/v2/arp/if$N/fe80:0::9 {"interface":"if$N","ip_address":"fe80:0::9","hw_address":"02:FE:00:00:00:09"}`,
	}
	spelledByGateway = []string{
		`config/linux/l3/v2/route/10.2$N.0.0/16/if$N {"outgoing_interface":"if$N","dst_network":"10.2$N.7.7/16","gw_addr":"10.$N.0.2"}`,
		`config/linux/l3/v2/route/10.$N.10.1/32/if$N {"outgoing_interface":"if$N","dst_network":"10.$N.10.1/32","gw_addr":"10.$N.77.1","on_link":true}`,
		`config/linux/l3/v2/route/fd00:$N:c::/64/if$N {"outgoing_interface":"if$N","dst_network":"fd00:$N:c::/64","gw_addr":"FE80:0::2"}`,
		`config/linux/l3/v2/route/fd00:$N:d::/64/if$N {"outgoing_interface":"if$N","dst_network":"fd00:$N:d::1/64","gw_addr":"FD00:$N::0:2","metric":7}`,
		`config/linux/l3/v2/arp/if$N/10.$N.0.9 {"interface":"if$N","ip_address":"10.$N.0.9","hw_address":"02:fe:00:00:00:09"}`,
		`config/linux/l3/v2/arp/if$N/::ffff:10.$N.0.8 {"interface":"if$N","ip_address":"::ffff:10.$N.0.8","hw_address":"02:fe:00:00:00:09"}`,
	}
)

// theirs are addresses and routes of other programs that only they write: they stay.
var theirs = []string{
	"ip $NS addr add 10.$N.7.1 peer 10.$N.7.2/32 dev x$N", "ip $NS addr add 10.$N.8.1 peer 10.$N.8.2/24 dev x$N",
	"ip $NS -6 addr add fd00:$N:7::1 peer fd00:$N:7::2/128 dev x$N nodad", "ip $NS -6 addr add fd00:$N:8::1 peer fd00:$N:8::2/64 dev x$N nodad",
}

// The kernel answers in its own form, in events as in dumps, whatever the form of a declaration. So nothing is to do after
// each thing of each kind was removed, and put back, on links of all kinds, nor after a restart.
func TestFormsOnAllKinds(t *testing.T) {
	testkit.Netns(t)
	_, err := exec.LookPath("ip")
	testkit.Need(t, "ip (iproute2)", err == nil)
	a := newAgent()
	a.with = withTAPs()
	if err := a.start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(a.end)
	var links []fight
	// A VRF has its declared routes in another table than those of its addresses, so no gateway is reachable there.
	for i, kind := range []string{"VETH", "TAP_TO_VPP", "LOOPBACK", "EXISTING", "DUMMY", "VRF_DEVICE", "VETH", "DUMMY", "TAP_TO_VPP"} {
		f := fight{kind: kind, name: kind, values: slices.Concat(linkOf[kind], spelledOnLink), vrf: i > 5}
		if kind != "LOOPBACK" && kind != "VRF_DEVICE" {
			f.values = append(f.values, spelledByGateway...)
		}
		addrs := spelled
		if f.vrf {
			f.name += " in a VRF"
			f.values = append(f.values, `config/linux/interfaces/v2/interface/vrf$N {"name":"vrf$N","type":"VRF_DEVICE","enabled":true,$IN"vrf_dev":{"routing_table":1$N}}`)
			addrs = `"vrf_master_interface":"vrf$N",` + spelled
		}
		for j := range f.values {
			f.values[j] = strings.Replace(f.values[j], "$ADDRS", addrs, 1)
		}
		if canHave(t, f) {
			links = append(links, a.declare(t, f, i+10))
		}
	}
	if err := a.commit(nil); err != nil {
		t.Fatal(err)
	}
	for _, f := range links {
		if f.kind == "LOOPBACK" {
			key := f.fill(f.number, "config/linux/l3/v2/arp/if$N/10.$N.0.9")
			if err := errors.Join(a.put([]string{key, f.fill(f.number, `{"interface":"if$N","ip_address":"10.$N.0.9","hw_address":"02:fe:00:00:00:09"}`)}), a.commit(nil), a.state([]string{key, "INVALID", "neither a loopback nor a point-to-point link"}), a.del([]string{key}), a.commit(nil)); err != nil {
				t.Errorf("%s: %v", f.name, err)
			}
		}
		for _, v := range f.values {
			key, _, _ := strings.Cut(v, " ")
			if err := a.state([]string{key, "CONFIGURED"}); err != nil {
				t.Errorf("%s: %v", f.name, err)
			}
		}
		for _, act := range theirs {
			if out, err := exec.Command("sh", "-c", f.fill(f.number, act)).CombinedOutput(); err != nil {
				t.Errorf("%s: %s: %v: %s", f.name, act, err, out)
			}
		}
	}
	if err := eventually(a.inSync); err != nil {
		t.Errorf("at first: %v", err)
	}
	for _, f := range links {
		if err := a.removeAll(f); err != nil {
			t.Errorf("%s: %v", f.name, err)
		}
	}
	if err := eventually(a.inSync); err != nil {
		t.Errorf("after all was removed by hand: %v", err)
	}
	if err := a.restart(nil); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(a.resync(nil), a.resync(nil), a.inSync()); err != nil {
		t.Errorf("after a restart: %v", err)
	}
	for _, f := range links {
		for _, peer := range []string{"10.$N.7.1 peer 10.$N.7.2/32", "10.$N.8.1 peer 10.$N.8.2/24", "fd00:$N:7::1 peer fd00:$N:7::2/128", "fd00:$N:8::1 peer fd00:$N:8::2/64"} {
			out, err := exec.Command("sh", "-c", f.fill(f.number, "ip $NS addr show dev x$N")).Output()
			if err != nil || !strings.Contains(string(out), f.fill(f.number, peer)) {
				t.Errorf("%s: of another program was %s; the link has %v\n%s", f.name, peer, err, out)
			}
		}
	}
}

// removeAll removes what is declared on a link as somebody else, one by one, and waits until it is back in the kernel.
func (a *agent) removeAll(f fight) error {
	sh := func(text string) string {
		out, _ := exec.Command("sh", "-c", f.fill(f.number, text)).CombinedOutput()
		return string(out)
	}
	list := map[string]string{
		"addr":  "ip $NS -o addr show dev x$N | grep -v ' peer ' | grep -E ' (10[.]$N[.]|fd00:$N:|fe80::$N:1/)' | sed -E 's/ *(tentative|valid_lft|[\\]).*//'",
		"route": "ip $NS -o route show table $R proto 151; ip $NS -6 -o route show table $R proto 151",
		"neigh": "ip $NS neigh show dev x$N nud permanent",
	}
	for kind, show := range list {
		before := sh(show)
		for line := range strings.Lines(before) {
			fields := strings.Fields(line)
			switch kind {
			case "addr":
				sh("ip $NS addr del " + fields[3] + " dev x$N")
			case "route":
				family := map[bool]string{true: "-6"}[strings.Contains(fields[0], ":")]
				sh("ip $NS " + family + " route del " + strings.TrimSpace(strings.TrimSuffix(strings.TrimSpace(line), "pref medium")) + " table $R")
			case "neigh":
				sh("ip $NS neigh del " + fields[0] + " dev x$N")
			}
		}
		lines := func(text string) []string {
			all := strings.Split(text, "\n")
			slices.Sort(all)
			return all
		}
		if err := eventually(func() error {
			if after := sh(show); !slices.Equal(lines(before), lines(after)) {
				return fmt.Errorf("was\n%s\nis\n%s", before, after)
			}
			return nil
		}); err != nil {
			return err
		}
	}
	return nil
}

// inSync expects that drift shows nothing, and that a resync does nothing.
func (a *agent) inSync() error {
	report, err := drift.Check(context.Background(), a.s)
	if err != nil {
		return err
	}
	for _, v := range report.Values {
		err = errors.Join(err, fmt.Errorf("drift shows %s: %+v", v.Key, v))
	}
	record, failed := a.s.Commit(context.Background(), scheduler.Txn{Refresh: true})
	for _, op := range record.Executed.All() {
		if !op.Noop {
			err = errors.Join(err, fmt.Errorf("the resync did %s %s: %v", op.Verb, op.Key, op.NewErr))
		}
	}
	return errors.Join(err, failed)
}
