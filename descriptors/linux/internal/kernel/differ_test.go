package kernel_test

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/keyplane/keyplane/descriptors/linux/internal/kernel"
	"github.com/keyplane/keyplane/internal/testkit"
)

// The table of the README says what kernels do differently, and this kernel does that.
func TestKernelsDifferAsTheREADMESays(t *testing.T) {
	_, err := exec.LookPath("ip")
	testkit.Need(t, "ip (iproute2)", err == nil)
	readme := string(must(os.ReadFile("../../README.md"))(t))
	var host unix.Utsname
	try(t, unix.Uname(&host))
	var major, minor int
	_, err = fmt.Sscanf(unix.ByteSliceToString(host.Release[:]), "%d.%d", &major, &minor)
	try(t, err)
	for _, c := range []struct {
		what         string
		major, minor int    // the first kernel that answers as the later ones
		before, then string // the answers, as the table has them
		do           func(t *testing.T, red kernel.Kernel, x kernel.Link) string
	}{
		{"rename of a link that is up", 6, 2, "EBUSY", "renamed", func(t *testing.T, red kernel.Kernel, x kernel.Link) string {
			err := red.SetName(x.Index, "z")
			if errors.Is(err, unix.EBUSY) {
				return "EBUSY"
			}
			try(t, err)
			return "renamed"
		}},
	} {
		t.Run(c.what, func(t *testing.T) {
			dir := testkit.Netns(t, "red", "blue")
			red, blue := open(t, dir+"/red"), open(t, dir+"/blue")
			try(t, red.AddVETH(kernel.Link{Name: "x"}, "y", blue))
			x := must(red.LinkByName("x"))(t)
			try(t, red.SetUp(x.Index, true))
			if row := fmt.Sprintf("| %s | %s | %s | %d.%d |", c.what, c.before, c.then, c.major, c.minor); !strings.Contains(readme, row) {
				t.Errorf("the README has no row %q", row)
			}
			want := c.before
			switch {
			case major > c.major || major == c.major && minor >= c.minor:
				want = c.then
			case major == 6 && minor > 1:
				return // between the kernels of the table
			}
			if got := c.do(t, red, x); got != want {
				t.Errorf("Linux %d.%d answers %s, want %s", major, minor, got, want)
			}
		})
	}
}
