package vpp_test

import (
	"testing"

	"github.com/keyplane/keyplane/descriptors/vpp/internal/simulated"
	"github.com/keyplane/keyplane/descriptors/vpp/keys"
	"github.com/keyplane/keyplane/scheduler"
)

// TestPoolUnderTwoNames declares the addresses of a pool a second time, under another key. That one is refused, and the
// mapping that needs the addresses stays, until neither of them is declared.
func TestPoolUnderTwoNames(t *testing.T) { onEachVPP(t, poolUnderTwoNames) }

func poolUnderTwoNames(t *testing.T, vpp *simulated.VPP) {
	const (
		twice   = `"first_ip":"10.6.0.1","last_ip":"10.6.0.3","twice_nat":true}`
		named   = "config/vpp/nat/v2/nat44-pool/a"
		unnamed = "config/vpp/nat/v2/nat44-pool/vrf/0/address/10.6.0.1-10.6.0.3"
		mapping = `{"label":"pooled","st_mappings":[{"external_ip":"10.7.0.2","external_port":80,"protocol":"UDP","twice_nat":"ENABLED",` +
			`"twice_nat_pool_ip":"10.6.0.2","local_ips":[{"local_ip":"10.1.0.2","local_port":8080}]}]}`
	)
	a := startAgent(t, vpp.Socket)
	awaitReady(t, a)
	value := map[string]string{named: `{"name":"a",` + twice, unnamed: `{` + twice}
	for _, order := range [][2]string{{named, unnamed}, {unnamed, named}} {
		first, second := order[0], order[1]
		a.want(true, keys.NAT44Global, `{}`, first, value[first], pooledKey, mapping)
		a.expectState(pooledKey, scheduler.Configured)
		record, err := a.declare(false, second, value[second])
		if err == nil {
			t.Errorf("%s and %s have the same addresses", first, second)
		}
		for _, op := range record.Executed.All() {
			if op.Verb == scheduler.Delete {
				t.Errorf("a second pool with the addresses of %s: executed DELETE %s", first, op.Key)
			}
		}
		expect := func() {
			a.expectState(first, scheduler.Configured)
			a.expectState(second, scheduler.Invalid)
			a.expectState(pooledKey, scheduler.Configured)
			a.resyncsInSync(vpp)
		}
		expect()
		a.want(true, keys.NAT44Global, `{}`, first, value[first], second, value[second], pooledKey, mapping) // nothing new is refused
		expect()

		// The second one takes over.
		a.unwant(first)
		a.expectState(second, scheduler.Configured)
		a.expectState(pooledKey, scheduler.Configured)
		a.resyncsInSync(vpp)
		a.unwant(second)
		a.expectState(pooledKey, scheduler.Pending)
		a.resyncsInSync(vpp)
	}
}
