package nat

import "testing"

// FuzzVRFs reads pages of "show nat44 vrf tables" of any content. The route after them is found.
func FuzzVRFs(f *testing.F) {
	f.Add("table 7:\n  [0] vrf-id 8\n  [1] vrf-id 9\ntable 10:\n")
	f.Add("[0] vrf-id 8\ntable -1:\ntable 4294967296:\n[x] vrf-id \n")
	f.Add("table :\n[0 vrf-id 8\n")
	f.Fuzz(func(t *testing.T, page string) {
		all := parseVRFs(page + "\ntable 7:\n  [0] vrf-id 8\n")
		routes := all[7]
		if len(all) > len(page)+1 || len(routes) == 0 || routes[len(routes)-1] != 8 {
			t.Errorf("%v of %q", all, page)
		}
	})
}
