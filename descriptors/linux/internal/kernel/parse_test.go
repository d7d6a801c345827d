package kernel

import "testing"

// FuzzParse holds that no message makes the parsers panic, and that what they
// accept is complete.
func FuzzParse(f *testing.F) {
	f.Add([]byte{2, 24, 0, 0, 7, 0, 0, 0, 8, 0, 1, 0, 10, 0, 0, 1})
	f.Add([]byte{2, 16, 0, 0, 254, 151, 0, 1, 0, 0, 0, 0, 8, 0, 1, 0, 10, 2, 0, 0, 8, 0, 4, 0, 7, 0, 0, 0})
	f.Add([]byte{2, 0, 0, 0, 7, 0, 0, 0, 0x80, 0, 0, 0, 8, 0, 1, 0, 10, 0, 0, 7})
	f.Add(append([]byte{36, 0, 0, 0, 2, 0, 0, 3, 9, 0, 0, 0, 0, 0, 0, 0, 0xef, 0xff, 0xff, 0xff}, make([]byte, 16)...))
	f.Add([]byte{2, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 5, 0, 19, 0, 1, 0, 0, 0, 8, 0, 6, 0, 232, 3, 0, 0})
	f.Fuzz(func(t *testing.T, m []byte) {
		if a, ok := parseAddr(m); ok && !a.Prefix.IsValid() {
			t.Errorf("address %+v", a)
		}
		if r, ok := parseRoute(m); ok && !r.Dst.IsValid() {
			t.Errorf("route %+v", r)
		}
		if n, _, ok := parseNeighbour(m); ok && !n.IP.IsValid() {
			t.Errorf("neighbour %+v", n)
		}
		if ofVRFs(m) {
			forAll(m)
		}
		for range answers(m) {
		}
	})
}
