package vpp_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"
	"pgregory.net/rapid"

	"github.com/keyplane/keyplane/descriptors/vpp/internal/simulated"
	"github.com/keyplane/keyplane/descriptors/vpp/keys"
	"github.com/keyplane/keyplane/internal/testkit/draw"
	"github.com/keyplane/keyplane/models"
	"github.com/keyplane/keyplane/scheduler"
)

// named are values of all kinds that have a name in VPP, which is to replace NAME.
var named = map[string]string{
	"vpp.interfaces":       `{"name":NAME,"type":"SOFTWARE_LOOPBACK","enabled":true,"ip_addresses":["10.0.%d.1/24"]}`,
	"vpp.l2.bridge-domain": `{"name":NAME,"forward":true,"mac_age":%d}`,
	"vpp.acls.acl":         `{"name":NAME,"rules":[{"action":"PERMIT","ip_rule":{"ip":{"destination_network":"10.0.%d.0/24","source_network":"10.0.0.0/8"}}}],"interfaces":{"ingress":[NAME],"egress":[NAME]}}`,
	"vpp.nat.dnat44":       `{"label":NAME,"id_mappings":[{"ip_address":"10.9.0.%d"}]}`,
	"vpp.vrf-table":        `{"id":%d,"label":NAME}`,
	"vpp.srv6.steering":    `{"name":NAME,"policy_bsid":"fd01::4","l3_traffic":{"prefix_address":"10.%d.0.0/16"}}`,
	"vpp.nat.nat44-pool":   `{"name":NAME,"first_ip":"10.8.0.%d"}`,
}

// specialNames are those that VPP, the keys, or the tags of agents could treat specially.
var specialNames = []string{
	"local0", "loop0", "UNTAGGED-loop0", "UNTAGGED-3", "UNTAGGED-", "vpp1.0123456789abcdef@x", "vpp2.0123456789abcdef@x", "a.0123456789abcdef@", "a.b@c", "@", "x@y", "~", "x~01234567",
	"x#1", "x.double1", "a/b", "/", "//", "a/", "/a", "x/address/y", "x/vrf/y", "unnumbered/x", "has-IP-address", "config/x", "a/interface/b", "%", "%s%n", "%d", " ", " a", "a ", "\n", "a\nb", "\t", "\x00",
	"a\x00b", "é", "à", "\u2028", "\ufeff", "😀", strings.Repeat("x", 63), strings.Repeat("x", 64), strings.Repeat("x", 62) + "é", strings.Repeat("é", 31), strings.Repeat("é", 32), ".", "..", "...", "-",
	"x pool=1", "x affinity=1", "x self", "all", "default", "none", "0", "-1", "4294967295", "NULL", "null", "true", "ipv4-VRF:0", `"`, `\`, "'", "<invalid>", "config", "vpp",
}

// Each name that passes validation is usable as written: VPP has the item, and the next agent finds it again under that
// name. This holds with tags that agents sign, and without.
func TestNamesAreUsable(t *testing.T) {
	name := rapid.OneOf(rapid.SampledFrom(specialNames), rapid.StringMatching(`[a-z0-9]{1,64}`), rapid.StringMatching(`[ -~]{1,70}`), rapid.String())
	for _, label := range []string{"", "vpp1"} {
		t.Run("label "+label, func(t *testing.T) {
			vpp := simulated.Start(t, simulated.Newest())
			vpp.Watch()
			known := quiet()
			known.label = label
			a := startAgentKnowing(t, vpp.Socket, known)
			awaitReady(t, a)
			empty := pages(vpp)
			tested := 0
			round := func(t interface{ Errorf(string, ...any) }, names []string) {
				all := valuesNamed(a, names)
				tested += len(all) / 2
				a.want(true, append(all, "config/vpp/nat/v2/nat44-global", `{}`, "config/vpp/srv6/v2/policy/fd01::4", `{"bsid":"fd01::4","srh_encapsulation":true,"segment_lists":[{"segments":["fd01::5"]}]}`)...)
				expectAll := func(after string) {
					for i := 0; i < len(all); i += 2 {
						if st, ok := a.sched.Status(all[i]); !ok || st.State != scheduler.Configured {
							t.Errorf("%s, %q is %+v", after, all[i], st)
						}
					}
					for _, name := range names {
						if _, is := a.sched.Status(keys.Interface(name).Key()); !is || !slices.Contains(all, keys.ACL(name)) {
							continue
						}
						applied := keys.ACLInterface{ACL: name, Interface: name}.Key()
						if st, ok := a.sched.Status(applied); !ok || st.State != scheduler.Configured {
							t.Errorf("%s, %q is %+v", after, applied, st)
						}
					}
				}
				expectAll("declared")
				a.stop()
				vpp.Counts()
				again := startAgentKnowing(a.T, vpp.Socket, known)
				awaitReady(a.T, again)
				a = again
				record := a.want(true, append(all, "config/vpp/nat/v2/nat44-global", `{}`, "config/vpp/srv6/v2/policy/fd01::4", `{"bsid":"fd01::4","srh_encapsulation":true,"segment_lists":[{"segments":["fd01::5"]}]}`)...)
				for _, op := range record.Executed.All() {
					if !op.Noop {
						t.Errorf("the next agent does %s %q", op.Verb, op.Key)
					}
				}
				expectAll("after a restart")
			}
			for some := range slices.Chunk(specialNames, 9) {
				round(t, some)
			}
			draw.Few(t, 25, func(rt *rapid.T) { round(rt, rapid.SliceOfNDistinct(name, 1, 9, rapid.ID[string]).Draw(rt, "names")) })
			a.want(true)
			if has := pages(vpp); has != empty {
				t.Errorf("after all is deleted, VPP has\n%s\nwant\n%s", has, empty)
			}
			if tested < len(specialNames) {
				t.Errorf("only %d values were valid", tested)
			}
		})
	}
}

// valuesNamed returns valid values of all kinds with these names, as keys and JSON by turns.
func valuesNamed(a *agent, names []string) (out []string) {
	for _, kind := range slices.Sorted(maps.Keys(named)) {
		m, ok := models.BuiltIn().ByName(kind)
		if !ok {
			a.Fatalf("no model %s", kind)
		}
		for i, name := range names {
			quoted, err := json.Marshal(strings.ToValidUTF8(name, ""))
			if err != nil {
				a.Fatal(err)
			}
			text := strings.ReplaceAll(fmt.Sprintf(named[kind], i+1), "NAME", string(quoted))
			v, err := m.Unmarshal([]byte(text))
			if err != nil {
				continue // such as control characters
			}
			key, err := m.Key(v)
			if err != nil || !valid(a, key, v) {
				continue
			}
			out = append(out, key, text)
		}
	}
	return out
}

func valid(a *agent, key string, v proto.Message) bool {
	return a.sched.Validate(scheduler.KeyValue{Key: key, Value: v}) == nil
}
