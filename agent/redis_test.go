package agent

import (
	"os"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/keyplane/keyplane/internal/testkit"
)

type redisKey struct{}

// A redisServer is the Redis of a script, from its first `redis start` on.
type redisServer struct {
	t testing.TB
	*testkit.Redis
}

// redisCommand is a command of the scripts: redis start | stop | SET KEY VALUE |
// DEL KEY, with keys below that of the agent. The first start writes redis.conf,
// which says where the server is. It does what a user does, with redis-cli.
func redisCommand(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) == 0 {
		ts.Fatalf("usage: redis start | stop | SET KEY VALUE | DEL KEY")
	}
	s := ts.Value(redisKey{}).(*redisServer)
	switch verb := args[0]; {
	case verb == "start" && s.Redis == nil:
		s.Redis = testkit.StartRedis(s.t, testkit.RedisOptions{})
		ts.Check(os.WriteFile(ts.MkAbs("redis.conf"), []byte("endpoint: "+s.Addr+"\n"), 0o600))
	case verb == "start":
		s.Start()
	case verb == "stop":
		s.Kill()
	default:
		args[1] = "/vnf-agent/vpp1/" + args[1]
		s.RedisCLI(args...)
	}
}
