package scratch_test

import (
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"github.com/vishvananda/netlink"

	"github.com/keyplane/keyplane/internal/scratch"
	"github.com/keyplane/keyplane/internal/testkit"
)

func TestMain(m *testing.M) { os.Exit(scratch.Main(m.Run)) }

func TestItIsAWorldOfItsOwn(t *testing.T) {
	testkit.Need(t, "scratch namespaces", scratch.Inside())
	links, err := netlink.LinkList()
	if err != nil {
		t.Fatal(err)
	}
	if len(links) != 1 || links[0].Attrs().Name != "lo" || links[0].Attrs().Flags&1 == 0 {
		t.Errorf("links = %v, want the loopback interface alone, up", links)
	}
	if entries, err := os.ReadDir("/run"); err != nil || len(entries) != 1 {
		t.Errorf("/run holds %v (%v), want netns alone", entries, err)
	}
}

func TestNamedNetnsAreApart(t *testing.T) {
	testkit.Need(t, "scratch namespaces", scratch.Inside())
	if err := scratch.AddNetns("apart"); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := scratch.DelNetns("apart"); err != nil {
			t.Error(err)
		}
	})
	err := scratch.InNetns("apart", func() error {
		return netlink.LinkAdd(&netlink.Veth{LinkAttrs: netlink.LinkAttrs{Name: "here"}, PeerName: "there"})
	})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := netlink.LinkByName("here"); err == nil {
		t.Error("a link made in a named namespace stands outside it")
	}
	if err := scratch.AddNetns("apart"); err == nil {
		t.Error("making the same namespace twice succeeded")
	}
	if err := scratch.InNetns("nowhere", func() error { return nil }); err == nil || !strings.Contains(err.Error(), "nowhere") {
		t.Errorf("entering a namespace that is not there: %v, want an error that names it", err)
	}
}

// An ordinary user gets the same, by way of a user namespace.
func TestAsAnOrdinaryUser(t *testing.T) {
	somebody := testkit.OrdinaryUser(t)
	cmd := exec.Command("/proc/self/exe", "-test.run=TestItIsAWorldOfItsOwn|TestNamedNetnsAreApart", "-test.v")
	cmd.Env = []string{"CI=true"} // what is skipped there fails here
	cmd.Dir = "/"
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: somebody}
	out, err := cmd.CombinedOutput()
	if err != nil && strings.Contains(string(out), "no scratch namespaces") {
		testkit.Need(t, "user namespaces for ordinary users: "+string(out), false)
	}
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
}
