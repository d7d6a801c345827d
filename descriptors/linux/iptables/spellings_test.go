package iptables

import (
	"fmt"
	"testing"

	"github.com/keyplane/keyplane/descriptors/linux/iptables/internal/ruletext/cases"
)

// Each accepted text adds its rules to the chain, reads back as it was declared, and does so again and again.
func TestSpellings(t *testing.T) {
	each(t, func(t *testing.T) {
		h := inRed(t)
		written := 0
		h.tool = writes{h.tool, &written}
		var values []desired
		for _, family := range "46" {
			values = append(values, desired{Key: fmt.Sprintf("config/linux/iptables/v2/rulechain/other%c", family),
				Value: chainIn(t, fmt.Sprintf(`name: "other%c" protocol: IPV%c chain_type: CUSTOM chain_name: "other"`, family, family))})
		}
		for i, one := range cases.Spellings() {
			for _, family := range one.Family {
				v := chainIn(t, fmt.Sprintf(`name: "s%d-%c" protocol: IPV%c chain_type: CUSTOM chain_name: "s%d" rules: %q`, i, family, family, i, one.Text))
				if err := h.validate("", v); err != nil {
					t.Errorf("%s is refused: %v", one.Text, err)
				}
				v, _ = normalize("", v)
				values = append(values, desired{Key: "config/linux/iptables/v2/rulechain/" + v.GetName(), Value: v})
			}
		}
		for i, one := range h.createAll(t.Context(), values) {
			if one.Err != nil {
				t.Errorf("%v: %v", values[i].Value.GetRules(), one.Err)
			}
		}
		if written > 2 {
			t.Errorf("%d batches were needed for two tables", written)
		}
		for range 2 {
			h.expectForms(values, true)
			if h.recheck() {
				t.Error("what was written counts as changed")
			}
		}
		for _, program := range []string{"iptables", "ip6tables"} {
			all := parse(h.do(program + "-save"))
			for name, c := range all["filter"] {
				if !isBuiltIn(name) && name != "other" && len(c.rules) != 2 {
					t.Errorf("%s: %s has the rules %q", program, name, c.rules)
				}
			}
		}
	})
}
