package redis_test

import (
	"strings"
	"testing"

	"github.com/keyplane/keyplane/connectors/redis"
	"github.com/keyplane/keyplane/internal/testkit"
	"github.com/keyplane/keyplane/kvdbsync"
	"github.com/keyplane/keyplane/kvdbsync/conformance"
)

// fill writes many keys with values of 4 kB, in one transaction.
func (s *server) fill(keys int, letter string) {
	s.t.Helper()
	const script = `for i = 1, ARGV[1] do redis.call('set', KEYS[1] .. i, string.rep(ARGV[2], 4000)) end return 1`
	s.do("EVAL", script, 1, root, keys, letter)
}

// awaitFilled waits for the keys of fill.
func awaitFilled(m *conformance.Mirror, keys int, letter string) {
	m.Until(func() bool {
		n := 0
		for _, value := range m.Has {
			if strings.HasPrefix(value, letter) {
				n++
			}
		}
		return n == keys && m.Source.Health().State == kvdbsync.Synced
	})
}

// The server ends the connection of a client when an answer for it takes too much memory.
func TestServerThatBoundsItsClients(t *testing.T) {
	t.Parallel()
	for name, args := range map[string][]string{
		"maxmemory-clients":          {"--maxmemory", "100mb", "--maxmemory-clients", "300kb"},
		"client-output-buffer-limit": {"--client-output-buffer-limit", "normal 300kb 0 0"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := start(t, args...)
			s.fill(1000, "a")
			awaitFilled(follow(t, s.connector()), 1000, "a")
		})
	}
}

// The answers for many keys that change at once are small, too: they count towards the server's maxmemory.
func TestManyLargeValuesChangeAtOnce(t *testing.T) {
	t.Parallel()
	s := start(t, "--client-output-buffer-limit", "normal 8mb 0 0")
	s.fill(5000, "a")
	m := follow(t, redis.New(redis.Config{Endpoint: s.redis.Addr, ReadTimeout: testkit.Patience}, discard()))
	awaitFilled(m, 5000, "a")
	s.fill(5000, "b")
	awaitFilled(m, 5000, "b")
	if h := m.Source.Health(); h.Gaps > 0 {
		t.Errorf("an answer was too large: %v", h.LastErr)
	}
}
