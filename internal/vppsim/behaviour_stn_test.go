package vppsim_test

import (
	"context"
	"errors"

	"go.fd.io/govpp/api"
	"go.fd.io/govpp/binapi/stn"

	"github.com/keyplane/keyplane/internal/vppwire"
)

func hostRows() []row {
	return []row{{"rules for addresses of the host", func(v *vpp) {
		i, j := v.loop(), v.loop()
		set := func(address string, at index, add bool, want api.VPPApiError) {
			v.Helper()
			q := &stn.StnAddDelRule{IPAddress: addr(address), SwIfIndex: at, IsAdd: add}
			v.call("stn_add_del_rule", want, q, &stn.StnAddDelRuleReply{})
		}
		has := func(want map[string]index) {
			v.Helper()
			all := dump[stn.StnRulesDetails](v, &stn.StnRulesDump{})
			for _, d := range all {
				if want[vppwire.Addr(d.IPAddress).String()] != d.SwIfIndex {
					v.Errorf("there is %+v; expected %v", d, want)
				}
			}
			if len(all) != len(want) {
				v.Errorf("there are %d rules; expected %v", len(all), want)
			}
		}
		v.Cleanup(func() { // what a failed row leaves
			for _, address := range []string{"10.7.0.1", "fd07::1"} {
				q := &stn.StnAddDelRule{IPAddress: addr(address)}
				if err := v.Call(context.WithoutCancel(v.Context()), q, &stn.StnAddDelRuleReply{}); err != nil && !errors.Is(err, api.NO_SUCH_ENTRY) {
					v.Log(err)
				}
			}
		})
		set("10.7.0.1", i, false, api.NO_SUCH_ENTRY)
		set("10.7.0.1", i, true, 0)
		set("fd07::1", j, true, 0)
		set("10.7.0.1", j, true, 0) // takes the place of the first
		has(map[string]index{"10.7.0.1": j, "fd07::1": j})
		if err := v.delete(j); err != nil {
			v.Error(err)
		}
		has(map[string]index{"10.7.0.1": j, "fd07::1": j})
		set("10.7.0.1", i, false, 0) // the interface does not matter
		set("fd07::1", j, false, 0)
		has(nil)
	}}}
}
