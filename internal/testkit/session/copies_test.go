package session

import "testing"

// The error of a script says what it expected, and not only that its process has failed.
func TestReason(t *testing.T) {
	for out, want := range map[string]string{
		"# a step (0.1s)\n> await agent ready\n    FAIL: x.txtar:3: agent: no match for \"ready\"\n--- FAIL: TestScripts\n": `FAIL: x.txtar:3: agent: no match for "ready"`,
		"panic: oh\n": "it has ended without a reason",
	} {
		if got := reason([]byte(out)); got != want {
			t.Errorf("%q: %q; expected %q", out, got, want)
		}
	}
}
