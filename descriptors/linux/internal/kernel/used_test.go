package kernel_test

import (
	"bufio"
	"os/exec"
	"testing"

	"github.com/keyplane/keyplane/descriptors/linux/internal/kernel"
	"github.com/keyplane/keyplane/internal/scratch"
	"github.com/keyplane/keyplane/internal/testkit"
)

// A program that the agent runs in a namespace, such as iptables-save, is no use of it by others.
func TestUsedByOthers(t *testing.T) {
	testkit.Netns(t, "red")
	id, err := kernel.This{}.Stat("/run/netns/red")
	if err != nil {
		t.Fatal(err)
	}
	inRed := func(at kernel.ID) bool { return at == id }
	run := func(name string, args ...string) (end func()) {
		cmd := exec.Command(name, args...)
		in, err := cmd.StdinPipe()
		if err != nil {
			t.Fatal(err)
		}
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := scratch.InNetns("red", cmd.Start); err != nil {
			t.Fatal(err)
		}
		if _, err := in.Write([]byte("runs\n")); err != nil {
			t.Fatal(err)
		}
		if _, err := bufio.NewReader(out).ReadString('\n'); err != nil {
			t.Fatal(err)
		}
		return func() { _ = in.Close(); _ = cmd.Wait() }
	}
	end := run("cat")
	if used := (kernel.This{}).Used(inRed); len(used) > 0 {
		t.Errorf("a program of this process counts: %v", used)
	}
	end()
	// The shell runs cat as a child, so the parent of cat is another process than this one.
	end = run("sh", "-c", "cat; true")
	defer end()
	if used := (kernel.This{}).Used(inRed); used[id] == "" {
		t.Error("the program of another process does not count")
	}
}
