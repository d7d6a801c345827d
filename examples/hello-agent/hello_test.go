package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/keyplane/keyplane/agent"
	"github.com/keyplane/keyplane/internal/testkit"
)

// TestHello runs the agent on a real etcd, puts a name, and reads the greeting.
func TestHello(t *testing.T) {
	e, dir, label := testkit.StartEtcd(t, testkit.EtcdOptions{}), t.TempDir(), fmt.Sprintf("%s-%d", t.Name(), os.Getpid())
	for name, text := range map[string]string{"etcd.conf": "endpoints: [" + e.Addr + "]\ninsecure-transport: true\n", "orchestrator.conf": `state-dir: ""`} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	o := options()
	o.Without = []agent.Part{agent.Linux, agent.VPP, agent.HTTP, agent.GRPC}
	o.Args = []string{"-config-dir=" + dir, "-socket=" + dir + "/socket", "-microservice-label=" + label}
	var log strings.Builder
	o.Stdout, o.Stderr = testkit.Log(t), &log
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	ended := make(chan error, 1)
	go func() { ended <- agent.Run(ctx, o) }()
	etcdctl := func(args ...string) string {
		out, err := exec.Command(testkit.Tool(t, "etcdctl"), append([]string{"--endpoints", e.Addr}, args...)...).CombinedOutput()
		if err != nil {
			t.Errorf("%v\n%s", err, out)
		}
		return string(out)
	}
	etcdctl("put", "/vnf-agent/"+label+"/hello/world", "1")
	greeting := ""
	if !testkit.Until(func() bool {
		greeting = etcdctl("get", "--print-value-only", "/vnf-agent/"+label+"/greetings/world")
		return greeting != ""
	}) || greeting != "{\"text\":\"Hello, world\"}\n" {
		t.Errorf("the greeting is %q", greeting)
	}
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
	if text := log.String(); !strings.Contains(text, "the greeter ends") || strings.Contains(text, "outside of the folder") {
		t.Errorf("the log is\n%s", text)
	}
}
