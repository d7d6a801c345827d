package agent

import (
	"os"
	"os/exec"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/keyplane/keyplane/internal/testkit"
)

type consulKey struct{}

// A consulServer is the Consul of a script, from its first `consul start` on.
type consulServer struct {
	t testing.TB
	*testkit.Consul
}

// consulCommand is a command of the scripts: consul start | stop | put KEY VALUE |
// delete KEY, with keys below that of the agent. The first start says where the server
// is by CONSUL_HTTP_ADDR, and puts its tool into the PATH. It does what a user does,
// with consul kv.
func consulCommand(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) == 0 {
		ts.Fatalf("usage: consul start | stop | put KEY VALUE | delete KEY")
	}
	s := ts.Value(consulKey{}).(*consulServer)
	switch verb := args[0]; {
	case verb == "start" && s.Consul == nil:
		s.Consul = testkit.StartConsul(s.t, testkit.ConsulOptions{})
		ts.Setenv("CONSUL_HTTP_ADDR", s.Addr)
		ts.Check(os.Symlink(testkit.ConsulProgram(s.t), ts.MkAbs("consul")))
		ts.Setenv("PATH", ts.MkAbs(".")+":"+ts.Getenv("PATH"))
	case verb == "start":
		s.Start()
	case verb == "stop":
		s.Kill()
	default:
		tool := exec.Command(testkit.ConsulProgram(s.t), append([]string{"kv", verb, "vnf-agent/vpp1/" + args[1]}, args[2:]...)...)
		tool.Env = append(os.Environ(), "CONSUL_HTTP_ADDR="+s.Addr)
		if out, err := tool.CombinedOutput(); err != nil {
			ts.Fatalf("consul kv: %v\n%s", err, out)
		}
	}
}
