package session

import (
	"net"
	"os"
	"strings"
	"testing"
)

// TestLabHere forgets AGENTCTL_SOCKET in the folder in which make run has an agent.
func TestLabHere(t *testing.T) {
	t.Chdir(t.TempDir())
	s := &settings{Socket: "none.sock", Host: "127.0.0.1", HTTPPort: 9191}
	hint := func() string {
		t.Helper()
		a, err := s.agent(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return a.hint
	}
	if got := hint(); got != "is it running?" {
		t.Errorf("without an agent here: %q", got)
	}
	if err := os.Mkdir(".run", 0o700); err != nil {
		t.Fatal(err)
	}
	listener, err := net.Listen("unix", labSocket)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = listener.Close() }()
	if got := hint(); !strings.HasSuffix(got, "export AGENTCTL_SOCKET=.run/agent.sock") {
		t.Errorf("with the agent of make run: %q", got)
	}
}
