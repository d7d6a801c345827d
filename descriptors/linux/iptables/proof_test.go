package iptables

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/keyplane/keyplane/internal/testkit"
)

// unreliable puts an iptables-restore first in PATH that reports success, but does something else with what it reads: a shell
// script, in which REAL is the program.
func unreliable(t *testing.T, script string) {
	t.Helper()
	dir := t.TempDir()
	for _, name := range []string{"iptables-restore", "ip6tables-restore"} {
		path, err := find(name)
		testkit.Need(t, name+" (iptables)", err == nil)
		if err := os.WriteFile(filepath.Join(dir, name), []byte("#!/bin/sh\n"+strings.ReplaceAll(script, "REAL", path)+"\n"), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv("PATH", dir+":"+os.Getenv("PATH"))
}

// What iptables reports as written, but does not list, is no success: the value fails, what was there before comes back, and
// other values of the same batch are written.
func TestUnlisted(t *testing.T) {
	for name, script := range map[string]string{
		"a rule is lost":  `sed /lost/d | REAL "$@"`,
		"a rule is twice": `sed '/lost/{p}' | REAL "$@"`,
		"all is lost":     `all=$(cat); case $all in *lost*) exit 0;; esac; echo "$all" | REAL "$@"`,
	} {
		t.Run(name, func(t *testing.T) {
			each(t, func(t *testing.T) {
				h := inRed(t)
				b := h.bench()
				first := chainIn(t, `name: "first" chain_type: INPUT default_policy: DROP rules: "-s 10.0.0.1,10.0.0.2 -j ACCEPT" rules: "-i lo -j ACCEPT"`)
				b.Create(t, first)
				h.recheck()
				before := h.counters()

				unreliable(t, script)
				const lost = `rules: "-j ACCEPT" rules: "-m comment --comment lost -j DROP" `
				values := []desired{
					{Key: "1", Value: chainIn(t, `name: "1" chain_type: OUTPUT default_policy: DROP `+lost)},
					{Key: "2", Value: chainIn(t, `name: "2" chain_type: CUSTOM chain_name: "two" rules: "-j ACCEPT"`)},
					{Key: "3", Value: chainIn(t, `name: "3" chain_type: CUSTOM chain_name: "three" `+lost)},
				}
				written := 0
				h.tool = writes{h.tool, &written}
				made := h.createAll(t.Context(), values)
				for i, one := range made {
					if errors.Is(one.Err, errUnlisted) != (i != 1) {
						t.Errorf("%v: %v", values[i].Value, one.Err)
					}
				}
				if err := h.delete(t.Context(), values[1].Key, values[1].Value, made[1].Meta); err != nil {
					t.Error(err)
				}
				_, err := b.D.Update(t.Context(), b.Key(t, first), first, chainIn(t, `name: "first" chain_type: INPUT `+lost), Meta{NS: h.space.ID})
				if !errors.Is(err, errUnlisted) {
					t.Errorf("updated: %v", err)
				}
				for range 2 {
					if h.recheck() {
						t.Error("what came back counts as changed")
					}
				}
				b.Expect(t, first)
				if after := h.counters(); after != before {
					t.Errorf("before:\n%s\nafter:\n%s", before, after)
				}
				if most := 1 + 3 + 2 + 1 + 2 + 1; written > most {
					t.Errorf("%d batches were written, expected at most %d", written, most)
				}
			})
		})
	}
}
