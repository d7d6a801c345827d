package redis

import (
	"strings"
	"testing"
)

func TestReplicationIDs(t *testing.T) {
	t.Parallel()
	const id = "8371b4fb1155b71f4a04d3e1bc3e18c4a990aeeb"
	for _, c := range []struct{ info, id, former string }{
		{"# Replication\r\nrole:master\r\nmaster_replid:" + id + "\r\nmaster_replid2:" + strings.Repeat("0", 40) + "\r\n", id, ""},
		{"master_replid:" + id + "\r\nmaster_replid2:" + strings.Repeat("a0", 20) + "\r\n", id, strings.Repeat("a0", 20)},
		{"# Replication\r\nrole:master\r\n", "", ""},
		{"", "", ""},
	} {
		if id, former := replicationIDs(c.info); id != c.id || former != c.former {
			t.Errorf("%q: %q and %q, want %q and %q", c.info, id, former, c.id, c.former)
		}
	}
}
