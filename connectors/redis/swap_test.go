package redis_test

import (
	"testing"

	"github.com/keyplane/keyplane/connectors/redis"
	"github.com/keyplane/keyplane/internal/testkit"
)

// SWAPDB is announced by neither way, as the README says. The next listing finds what it
// has changed.
func TestSwappedDatabases(t *testing.T) {
	t.Parallel()
	for way, rights := range map[string]string{"tracking": "+@all", "notifications": "-client|tracking"} {
		t.Run(way, func(t *testing.T) {
			s := start(t)
			s.do("ACL", "SETUSER", "agent", "on", ">secret", "~*", "&*", "+@all", rights)
			c := redis.New(redis.Config{ReadTimeout: testkit.Patience, Endpoint: s.line.Addr, Username: "agent", Password: "secret"}, discard())
			s.put(root+"a", "1")
			m := follow(t, c)
			m.Await("a", "1")
			s.do("SWAPDB", 0, 1)
			s.put(root+"b", "1")
			m.Await("a", "1", "b", "1")
			follow(t, c).Await("b", "1")
		})
	}
}
