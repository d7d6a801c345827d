package ipsec

import "testing"

// FuzzBindings reads pages of "show ipsec spd" of any content. The binding after them is found.
func FuzzBindings(f *testing.F) {
	f.Add("SPD Bindings:\n  7 -> loop0\n  -2 -> memif1/0\n")
	f.Add(" -> \n x -> y\n99999999999999999999 -> z\n1 -> 2 -> 3")
	f.Add("SPD Bindings: none\n")
	f.Fuzz(func(t *testing.T, page string) {
		numbers := bindingsIn(page + "\n  7 -> loop0\n")
		if len(numbers) == 0 || len(numbers) > len(page)+1 || numbers[len(numbers)-1] != 7 {
			t.Errorf("%d bindings %v of %q", len(numbers), numbers, page)
		}
	})
}
