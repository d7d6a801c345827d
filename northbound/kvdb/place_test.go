package kvdb_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/keyplane/keyplane/internal/reach"
	"github.com/keyplane/keyplane/internal/testkit"
	"github.com/keyplane/keyplane/northbound/kvdb"
)

// shared is a folder that everybody may write, like /tmp, below one that all can reach.
func shared(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "kvdb") //nolint:usetesting // another user must reach it
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	if err := os.Chmod(dir, 0o777|fs.ModeSticky); err != nil {
		t.Fatal(err)
	}
	return dir
}

// asChildOf has a test run again as another user, with env.
func asChildOf(t *testing.T, test string, who *syscall.Credential, env ...string) string {
	t.Helper()
	child := exec.Command("/proc/self/exe", "-test.run=^"+test+"$", "-test.v")
	child.Env = append(slices.Clone(env), "KVDB_CHILD=1", "PATH="+os.Getenv("PATH"))
	child.Dir = "/"
	child.SysProcAttr = &syscall.SysProcAttr{Credential: who}
	out, err := child.CombinedOutput()
	if err != nil {
		t.Logf("child: %v", err)
	}
	return string(out)
}

func listenAt(socket string) error {
	s := kvdb.Server{Socket: socket, Label: "edge"}
	err := s.Listen(context.Background())
	s.Close()
	return err
}

// TestUserWithoutRuntimeDirectory shows that an agent of an ordinary user takes no folder
// that another user has made or can write.
func TestUserWithoutRuntimeDirectory(t *testing.T) {
	if os.Getenv("KVDB_CHILD") != "" {
		fmt.Fprintln(os.Stdout, "RESULT", listenAt(reach.DefaultSocket("vpp1")))
		return
	}
	who := testkit.OrdinaryUser(t)
	const nobody, other = 65534, 65533
	name := fmt.Sprintf("keyplane-%d", nobody)
	for _, test := range []struct {
		name, want string
		prepare    func(place string) error
	}{
		{"none yet", "RESULT <nil>", func(string) error { return nil }},
		{"its own", "RESULT <nil>", func(place string) error { return errors.Join(os.Mkdir(place, 0o700), os.Chown(place, nobody, nobody)) }},
		{"made by another user", "belongs to the user 65533", func(place string) error {
			return errors.Join(os.Mkdir(place, 0o777), os.Chmod(place, 0o777), os.Chown(place, other, other))
		}},
		{"writable by all", "has the mode 0777", func(place string) error {
			return errors.Join(os.Mkdir(place, 0o777), os.Chmod(place, 0o777), os.Chown(place, nobody, nobody))
		}},
		{"writable by a group of others", "has the mode 0770", func(place string) error {
			return errors.Join(os.Mkdir(place, 0o770), os.Chmod(place, 0o770), os.Chown(place, nobody, other))
		}},
		{"a link of another user", "is a symbolic link of the user 65533", func(place string) error {
			target := place + "-target"
			return errors.Join(os.Mkdir(target, 0o700), os.Chown(target, nobody, nobody), os.Symlink(target, place), os.Lchown(place, other, other))
		}},
		{"a file", "expected a directory", func(place string) error { return os.WriteFile(place, nil, 0o644) }},
	} {
		t.Run(test.name, func(t *testing.T) {
			tmp := shared(t)
			place := filepath.Join(tmp, name)
			if err := test.prepare(place); err != nil {
				t.Fatal(err)
			}
			out := asChildOf(t, "TestUserWithoutRuntimeDirectory", who, "TMPDIR="+tmp)
			if !strings.Contains(out, test.want) && !(test.name == "a file" && strings.Contains(out, "not a directory")) {
				t.Errorf("want %q:\n%s", test.want, out)
			}
			if info, err := os.Stat(place); test.name == "none yet" && (err != nil || info.Mode().Perm() != 0o700) {
				t.Errorf("the folder that was made: %v, %v", info, err)
			}
		})
	}
}

// TestOthersCannotBlockTheStart has a user lock all that it can reach of root's folder.
func TestOthersCannotBlockTheStart(t *testing.T) {
	if place := os.Getenv("PLACE"); place != "" {
		for _, path := range []string{place, filepath.Join(place, "s"), filepath.Join(place, "s.lock")} {
			f, err := os.Open(path)
			if err == nil {
				err = unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
			}
			fmt.Fprintln(os.Stdout, "LOCK", filepath.Base(path), err)
		}
		if err := listenAt(filepath.Join(place, "s")); err == nil {
			fmt.Fprintln(os.Stdout, "SERVED")
		}
		_, _ = os.Stdin.Read(make([]byte, 1)) // until it is closed
		return
	}
	who := testkit.OrdinaryUser(t)
	place := filepath.Join(shared(t), "keyplane")
	if err := os.Mkdir(place, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(place, "s.lock"), nil, 0o600); err != nil { // of an agent that was killed
		t.Fatal(err)
	}
	child := exec.Command("/proc/self/exe", "-test.run=^TestOthersCannotBlockTheStart$")
	child.Env, child.Dir = []string{"PLACE=" + place}, "/"
	child.SysProcAttr = &syscall.SysProcAttr{Credential: who}
	hold, err := child.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	said, err := child.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { hold.Close(); _ = child.Wait() }()
	var text strings.Builder
	for buf := make([]byte, 1024); strings.Count(text.String(), "LOCK") < 3; {
		n, err := said.Read(buf)
		if err != nil {
			t.Fatalf("the child ended: %s", &text)
		}
		text.Write(buf[:n])
	}
	if !strings.Contains(text.String(), "LOCK keyplane <nil>") || !strings.Contains(text.String(), "permission denied") {
		t.Errorf("the child locked: %s", &text)
	}
	if err := listenAt(filepath.Join(place, "s")); err != nil {
		t.Errorf("the start is blocked: %v", err)
	}
}

// TestGroup has a member of the group of the socket, and somebody who is none, ask an agent of root.
func TestGroup(t *testing.T) {
	if socket := os.Getenv("SOCKET"); socket != "" {
		label, err := kvdb.NewClient(socket, "bolt").Label(context.Background())
		fmt.Fprintln(os.Stdout, "RESULT", label, err)
		return
	}
	other := testkit.OrdinaryUser(t)
	const group = 65532
	socket := filepath.Join(shared(t), "keyplane", "s")
	s := kvdb.Server{Socket: socket, Label: "edge", Group: group}
	if err := s.Listen(t.Context()); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- s.Run(ctx) }()
	defer func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}()
	member := &syscall.Credential{Uid: other.Uid, Gid: other.Gid, Groups: []uint32{group}}
	for who, want := range map[*syscall.Credential]string{member: "RESULT edge <nil>", other: "permission denied: expected root, the user of the agent, or for an agent of root a member of the group keyplane"} {
		if out := asChildOf(t, "TestGroup", who, "SOCKET="+socket); !strings.Contains(out, want) {
			t.Errorf("groups %v: want %q:\n%s", who.Groups, want, out)
		}
	}
	for path, mode := range map[string]fs.FileMode{filepath.Dir(socket): 0o710, socket: 0o660, socket + ".lock": 0o600} {
		if info, err := os.Stat(path); err != nil || info.Mode().Perm() != mode {
			t.Errorf("%s: %v, %v; want mode %04o", path, info, err, mode)
		}
	}
}

// TestGroupLeavesTheFolderOfAnOperator has a directory that nobody else may enter.
func TestGroupLeavesTheFolderOfAnOperator(t *testing.T) {
	testkit.OrdinaryUser(t)
	dir := filepath.Join(t.TempDir(), "own")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	s := kvdb.Server{Socket: filepath.Join(dir, "s"), Group: 65532}
	if err := s.Listen(t.Context()); err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if info, err := os.Stat(dir); err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("%v, %v", info, err)
	}
}

// TestSecondAgentIsToldOfTheFirst shows the pid and the label, without waiting.
func TestSecondAgentIsToldOfTheFirst(t *testing.T) {
	socket := filepath.Join(t.TempDir(), "s")
	first := kvdb.Server{Socket: socket, Label: "edge"}
	if err := first.Listen(t.Context()); err != nil {
		t.Fatal(err)
	}
	err := listenAt(socket)
	if want := fmt.Sprintf(`the process with pid %d, label "edge"`, os.Getpid()); !errors.Is(err, kvdb.ErrInUse) || !strings.Contains(err.Error(), want) {
		t.Errorf("%v; want %s", err, want)
	}
	if info, err := os.Stat(socket + ".lock"); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("lock file: %v, %v", info, err)
	}
	first.Close()
	if err := listenAt(socket); err != nil {
		t.Errorf("after the first has ended: %v", err)
	}
	if remains, err := os.ReadDir(filepath.Dir(socket)); len(remains) > 0 || err != nil {
		t.Errorf("remains: %v, %v", remains, err)
	}
}

// TestClientTrustsItsOwnAgent has a socket of another user at the place of the agent.
func TestClientTrustsItsOwnAgent(t *testing.T) {
	if socket := os.Getenv("SOCKET"); socket != "" {
		_, err := kvdb.NewClient(socket, "bolt").Label(context.Background())
		fmt.Fprintln(os.Stdout, "RESULT", err)
		return
	}
	who := testkit.OrdinaryUser(t)
	dir := shared(t)
	socket := filepath.Join(dir, "s")
	// The kernel notes the user who listens: a thread that is another user for that moment.
	listener, err := listenAs(t, socket, 65533)
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	if err := os.Chmod(socket, 0o666); err != nil {
		t.Fatal(err)
	}
	out := asChildOf(t, "TestClientTrustsItsOwnAgent", who, "SOCKET="+socket)
	if !strings.Contains(out, "the listening process belongs to the user 65533") {
		t.Errorf("the client does not refuse it:\n%s", out)
	}
}

// listenAs listens on a thread that has another user's id, and ends with it.
func listenAs(t *testing.T, socket string, uid int) (l net.Listener, err error) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		runtime.LockOSThread() // never unlocked: the thread ends with its goroutine
		if _, _, e := unix.RawSyscall(unix.SYS_SETRESUID, ^uintptr(0), uintptr(uid), ^uintptr(0)); e != 0 {
			err = e
			return
		}
		l, err = (&net.ListenConfig{}).Listen(t.Context(), "unix", socket)
	}()
	<-done
	return l, err
}
