package info_test

import (
	"strings"
	"testing"

	"github.com/keyplane/keyplane/connectors/redis/internal/info"
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
		if id, former := info.ReplicationIDs(c.info); id != c.id || former != c.former {
			t.Errorf("%q: %q and %q, want %q and %q", c.info, id, former, c.id, c.former)
		}
	}
}

func FuzzField(f *testing.F) {
	f.Add("# Memory\r\nused_memory:1\r\nmaxmemory:100\r\nmaxmemory_policy:noeviction\r\n", "maxmemory")
	f.Add("maxmemory:", "maxmemory")
	f.Add("a:b:c\n", "a")
	f.Fuzz(func(t *testing.T, about, name string) {
		value := info.Field(about, name)
		if value != "" && !strings.Contains(about, name+":") {
			t.Errorf("found %q of %q", value, name)
		}
		if strings.ContainsAny(name, ":\r\n") {
			return
		}
		if got := info.Field(name+": 1 \r\n"+about, name); got != "1" {
			t.Errorf("found %q, not what is there", got)
		}
	})
}
