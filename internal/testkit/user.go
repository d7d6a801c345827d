package testkit

import (
	"os/exec"
	"syscall"
	"testing"
)

// OrdinaryUser returns the credentials of a user without privileges, for processes of a
// privileged test. The test is skipped in a user namespace that contains no other user.
func OrdinaryUser(t testing.TB) *syscall.Credential {
	t.Helper()
	const nobody = 65534
	who := &syscall.Credential{Uid: nobody, Gid: nobody}
	probe := exec.Command("true")
	probe.SysProcAttr = &syscall.SysProcAttr{Credential: who}
	Need(t, "root, to become somebody else", probe.Run() == nil)
	return who
}
