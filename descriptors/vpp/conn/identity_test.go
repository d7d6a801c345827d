package conn

import "testing"

// A run is clear if no other run can have the same clues.
func TestClues(t *testing.T) {
	all := clues{"b", 1, "7 at 12", "1:2 of 3.0"}
	for _, c := range []struct {
		clues   clues
		unclear bool
		text    string
	}{
		{all, false, "boot b, process 1 started as 7 at 12, socket 1:2 of 3.0"},
		{clues{"b", 1, "", all.socket}, false, "boot b, process 1 started as ?, socket 1:2 of 3.0"},
		{clues{"", 1, all.start, all.socket}, false, "boot ?, process 1 started as 7 at 12, socket 1:2 of 3.0"},
		{clues{"b", 1, all.start, ""}, false, "boot b, process 1 started as 7 at 12, socket ?"},
		{clues{"", 1, all.start, ""}, true, "boot ?, process 1 started as 7 at 12, socket ?"},
		{clues{"b", 1, "", ""}, true, "boot b, process 1 started as ?, socket ?"},
	} {
		if c.clues.unclear() != c.unclear || c.clues.String() != c.text {
			t.Errorf("%s is unclear: %t; expected %s, %t", c.clues, c.clues.unclear(), c.text, c.unclear)
		}
	}
}
