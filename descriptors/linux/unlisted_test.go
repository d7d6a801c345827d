package linux_test

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/keyplane/keyplane/internal/testkit"
	"github.com/keyplane/keyplane/scheduler"
)

// A chain that iptables does not list as it was written makes its value FAILED, also when it has been written before. It is not
// written again, whatever else happens in its namespace, unless somebody asks for that.
func TestUnlistedChainIsNotWrittenAgain(t *testing.T) {
	testkit.Netns(t)
	needIPTables(t)
	dir := t.TempDir()
	writes := filepath.Join(dir, "writes")
	path, err := exec.LookPath("iptables-restore")
	if err != nil {
		t.Fatal(err)
	}
	// It loses each rule with this comment, and counts the batches that have one.
	script := fmt.Sprintf("#!/bin/sh\nall=$(cat)\ncase $all in *lost*) echo x >>%s; all=$(echo \"$all\" | sed /lost/d);; esac\necho \"$all\" | %s \"$@\"\n", writes, path)
	if err := os.WriteFile(filepath.Join(dir, "iptables-restore"), []byte(script), 0o755); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", dir+":"+os.Getenv("PATH"))
	a := newAgent()
	t.Cleanup(a.end)
	t.Cleanup(func() { _ = exec.Command("sh", "-c", noRules).Run() })
	if err := a.start(); err != nil {
		t.Fatal(err)
	}
	const chain = "config/linux/iptables/v2/rulechain/"
	bad := func(name, kind string) []string {
		return []string{chain + name, fmt.Sprintf(`{"name":%q,"chain_type":%q,"rules":["-i lo -j ACCEPT","-m comment --comment lost -j DROP"]}`, name, kind)}
	}
	commit := func(values ...[]string) {
		t.Helper()
		for _, one := range values {
			if err := a.put(one); err != nil {
				t.Fatal(err)
			}
		}
		if err := a.commit(nil); err != nil {
			if _, ok := errors.AsType[*scheduler.TxnError](err); !ok {
				t.Fatal(err)
			}
		}
	}
	written := func() int {
		all, _ := os.ReadFile(writes)
		return bytes.Count(all, []byte("x"))
	}
	has := func(rule string) {
		t.Helper()
		if err := a.soon([]string{"iptables-save -t filter", rule}); err != nil {
			t.Error(err)
		}
	}
	commit([]string{chain + "changed", `{"name":"changed","chain_type":"INPUT","rules":["-i lo -j ACCEPT"]}`})
	has("test/changed.*kernel=")
	commit(bad("new", "OUTPUT"), bad("changed", "INPUT"))
	for _, name := range []string{"new", "changed"} {
		if err := a.stays([]string{chain + name, "FAILED", "expected 2"}); err != nil {
			t.Error(err)
		}
	}
	has("test/changed.*kernel=")
	before := written()
	own := regexp.MustCompile(`-j (kp-[0-9a-f]{16})`).FindStringSubmatch(savedRules("iptables"))[1] // the chain of changed
	for i := range 5 {
		act := fmt.Sprintf("iptables -A INPUT -s 192.0.2.%d -j DROP; iptables -A OUTPUT -j ACCEPT; iptables -A %s -j RETURN", i+1, own)
		if out, err := exec.Command("sh", "-c", act).CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		commit([]string{chain + "other", fmt.Sprintf(`{"name":"other","chain_name":"other","rules":["-s 10.0.0.%d -j ACCEPT"]}`, i+1)})
		has(fmt.Sprintf("test/other.*kernel=.*\n-A other -s 10.0.0.%d/32 -j ACCEPT", i+1))
	}
	if now := written(); now != before || before == 0 || before > 6 {
		t.Errorf("the chains were written %d times, and then %d times", before, now-before)
	}
}
