package agent

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

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
