package agent

import (
	"bytes"
	"errors"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/keyplane/keyplane/internal/scratch"
	"github.com/keyplane/keyplane/internal/testkit"
)

// A service manager that reads nothing, since it is busy or hangs, delays neither the network nor the end of the agent. One
// that reads again gets what there is to say.
func TestManagerThatReadsNothing(t *testing.T) {
	testkit.Need(t, "scratch namespaces (run as root, or allow user namespaces)", scratch.Inside())
	bin := build(t)
	for name, readsAgain := range map[string]bool{"for a while": true, "until the end": false} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			conn := fullSocket(t, filepath.Join(dir, "notify"))
			for file, text := range map[string]string{
				"filedb.conf": "configuration-paths: [" + dir + "/network]\n", "orchestrator.conf": "state-dir: " + dir + "/state\n",
			} {
				if err := os.WriteFile(filepath.Join(dir, file), []byte(text), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			var log bytes.Buffer
			agent := exec.Command(filepath.Join(bin, "agent"), "-config-dir="+dir, "-microservice-label=notified", "-socket="+dir+"/socket")
			agent.Env, agent.Stderr = append(os.Environ(), "NOTIFY_SOCKET="+dir+"/notify"), &log
			if err := agent.Start(); err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = agent.Process.Kill() })
			ready := func() bool {
				return exec.Command(filepath.Join(bin, "agentctl"), "--socket", dir+"/socket", "status", "--ready").Run() == nil
			}
			if !testkit.Until(ready) {
				t.Fatal("the agent is not ready")
			}
			for readsAgain {
				state := make([]byte, 100)
				n, err := conn.Read(state)
				if err != nil {
					t.Fatal(err)
				}
				readsAgain = !strings.HasPrefix(string(state[:n]), "READY=1")
			}
			if err := agent.Process.Signal(syscall.SIGTERM); err != nil {
				t.Fatal(err)
			}
			if err := agent.Wait(); err != nil {
				t.Errorf("%v; its log:\n%s", err, &log)
			}
		})
	}
}

// fullSocket returns a socket that takes no more states until somebody reads some.
func fullSocket(t *testing.T, path string) *net.UnixConn {
	t.Helper()
	conn, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: path, Net: "unixgram"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	if err := conn.SetReadDeadline(time.Now().Add(5 * time.Minute)); err != nil {
		t.Fatal(err)
	}
	fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_DGRAM|unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(fd)
	for err == nil {
		err = unix.Sendto(fd, []byte("of another service"), 0, &unix.SockaddrUnix{Name: path})
	}
	if !errors.Is(err, unix.EAGAIN) {
		t.Fatal(err)
	}
	return conn
}
