package agent

import (
	"bytes"
	"log/slog"
	"os/user"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

func TestSocketGroup(t *testing.T) {
	exists := func(name string) (*user.Group, error) {
		if name != "keyplane" {
			t.Errorf("group %q", name)
		}
		return &user.Group{Gid: "990"}, nil
	}
	missing := func(name string) (*user.Group, error) { return nil, user.UnknownGroupError(name) }
	for _, test := range []struct {
		name           string
		lookup         func(string) (*user.Group, error)
		uid, gid, want int
	}{
		{"an agent of root", exists, 0, 0, 990},
		{"an agent with this group", exists, 7, 990, 990},
		{"an agent of somebody", exists, 7, 7, 0},
		{"no such group", missing, 0, 0, 0},
	} {
		if got := socketGroup(test.lookup, test.uid, test.gid); got != test.want {
			t.Errorf("%s: %d, want %d", test.name, got, test.want)
		}
	}
}

func TestWarnUnprivileged(t *testing.T) {
	for _, test := range []struct {
		has  map[int]bool
		want string // the end of the line; empty: no line
	}{
		{map[int]bool{unix.CAP_NET_ADMIN: true, unix.CAP_SYS_ADMIN: true}, ""},
		{map[int]bool{unix.CAP_NET_ADMIN: true}, `lacking=CAP_SYS_ADMIN fails="network namespaces"`},
		{nil, `lacking="CAP_NET_ADMIN, CAP_SYS_ADMIN" fails="changes of Linux links, addresses and routes, network namespaces"`},
	} {
		var out bytes.Buffer
		warnUnprivileged(func(c int) bool { return test.has[c] }, slog.New(slog.NewTextHandler(&out, nil)))
		got := strings.TrimSpace(out.String())
		if test.want == "" && got != "" || !strings.HasSuffix(got, test.want) || strings.Count(got, "\n") > 0 {
			t.Errorf("%v: %q; expected one line that ends with %q", test.has, got, test.want)
		}
	}
}
