package filedb_test

import (
	"log/slog"
	"os"
	"os/exec"
	"syscall"
	"testing"

	"github.com/keyplane/keyplane/connectors/filedb"
	"github.com/keyplane/keyplane/internal/testkit"
)

func newDB(t testing.TB, cfg filedb.Config) *filedb.DB {
	t.Helper()
	return newLoggingDB(t, cfg, slog.New(slog.DiscardHandler))
}

func newLoggingDB(t testing.TB, cfg filedb.Config, log *slog.Logger) *filedb.DB {
	t.Helper()
	db, err := filedb.New(cfg, root, log)
	if err != nil {
		t.Fatal(err)
	}
	return db
}

func write(t testing.TB, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// holds waits until a short key has a value.
func (m *mirror) holds(t testing.TB, key, value string) {
	t.Helper()
	m.until(t, key+" = "+value, func() bool { return string(m.events[root+key].Value) == value })
}

// insideVar tells the test program that it is the one inside.
const insideVar = "FILEDB_TEST_INSIDE"

// inUserNamespace runs the calling test once more in a user namespace, as user uid
// there, and tells whether this is that run. As a user other than 0 it has no
// privileges, and owns its files all the same.
func inUserNamespace(t *testing.T, uid int) (inside bool) {
	t.Helper()
	if os.Getenv(insideVar) != "" {
		return true
	}
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(program, "-test.run=^"+t.Name()+"$", "-test.v")
	cmd.Env = append(os.Environ(), insideVar+"=1")
	cmd.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags:  syscall.CLONE_NEWUSER | syscall.CLONE_NEWNS,
		UidMappings: []syscall.SysProcIDMap{{ContainerID: uid, HostID: os.Geteuid(), Size: 1}},
		GidMappings: []syscall.SysProcIDMap{{ContainerID: uid, HostID: os.Getegid(), Size: 1}},
	}
	out, err := cmd.CombinedOutput()
	_, ran := cmd.ProcessState, err == nil || cmd.ProcessState != nil
	testkit.Need(t, "user namespaces", ran)
	if err != nil {
		t.Errorf("%v\n%s", err, out)
	}
	return false
}
