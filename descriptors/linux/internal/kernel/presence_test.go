package kernel_test

import (
	"strings"
	"testing"

	"github.com/keyplane/keyplane/descriptors/linux/internal/kernel"
	"github.com/keyplane/keyplane/internal/testkit"
)

func TestAliasOfAnInstallation(t *testing.T) {
	const id = "0123456789abcdef"
	for alias, want := range map[string][2]string{
		"/vnf-agent/vpp1/a/b #" + id:         {"/vnf-agent/vpp1/a/b", id},
		"/vnf-agent/vpp1/a #1/b #" + id:      {"/vnf-agent/vpp1/a #1/b", id},
		"/vnf-agent/vpp1/a/b":                {"/vnf-agent/vpp1/a/b", ""},
		"/vnf-agent/vpp1/a #12":              {"/vnf-agent/vpp1/a #12", ""},
		"/vnf-agent/vpp1/a #x123456789abcde": {"/vnf-agent/vpp1/a #x123456789abcde", ""},
		"":                                   {"", ""},
	} {
		rest, installation := kernel.SplitAlias(alias)
		if [2]string{rest, installation} != want || strings.TrimSpace(kernel.JoinAlias(rest, installation)) != alias {
			t.Errorf("%q: %q, %q", alias, rest, installation)
		}
	}
}

// An installation is seen in the namespace where it is announced, and only while it is.
func TestPresence(t *testing.T) {
	dir := testkit.Netns(t, "red", "blue")
	red, again, blue := open(t, dir+"/red"), open(t, dir+"/red"), open(t, dir+"/blue")
	const id = "0123456789abcdef"
	if red.Announced(id) {
		t.Error("seen before it was announced")
	}
	here := must(red.Announce(id))(t)
	for range 3 { // more than the queue of the socket has room for
		if !again.Announced(id) || blue.Announced(id) || red.Announced("fedcba9876543210") {
			t.Errorf("red %v, blue %v", again.Announced(id), blue.Announced(id))
		}
	}
	if _, err := again.Announce(id); err == nil {
		t.Error("announced twice")
	}
	try(t, here.Close())
	if red.Announced(id) {
		t.Error("seen after its end")
	}
}
