package testkit

import (
	"os/exec"
	"syscall"
	"testing"
)

// OrdinaryUser returns somebody without rights, as whom a test that has all of
// them can start processes. A user namespace, where only its own user is known,
// has nobody else.
func OrdinaryUser(t testing.TB) *syscall.Credential {
	t.Helper()
	const nobody = 65534
	who := &syscall.Credential{Uid: nobody, Gid: nobody}
	probe := exec.Command("true")
	probe.SysProcAttr = &syscall.SysProcAttr{Credential: who}
	Need(t, "root, to become somebody else", probe.Run() == nil)
	return who
}
