package capability_test

import (
	"os"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/keyplane/keyplane/internal/capability"
)

// TestHas compares with /proc/self/status, which has the effective set as hexadecimal digits.
func TestHas(t *testing.T) {
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(status), "CapEff:")
	set, err := strconv.ParseUint(strings.Fields(rest)[0], 16, 64)
	if err != nil {
		t.Fatal(err)
	}
	for c := range unix.CAP_LAST_CAP + 1 {
		if got, want := capability.Has(c), set&(1<<c) != 0; got != want {
			t.Errorf("capability %d: %v; expected %v", c, got, want)
		}
	}
}
