package kernel

import (
	"errors"
	"slices"

	"golang.org/x/sys/unix"

	"github.com/keyplane/keyplane/scheduler/reading"
)

// refusals are errors of rtnetlink(7) with which the kernel refuses a request for what it asks, whatever is there. It has done
// nothing then. Others may mean that something is not as the agent knows it.
var refusals = []unix.Errno{
	unix.EINVAL, unix.EPERM, unix.EACCES, unix.ERANGE, unix.EOPNOTSUPP, unix.EAFNOSUPPORT, unix.EADDRNOTAVAIL, unix.ENETUNREACH, unix.EHOSTUNREACH,
}

// Refused says that nothing need be read back after err if it is a refusal. It is for the error of the only request that may have changed
// something.
func Refused(err error) error {
	if slices.ContainsFunc(refusals, func(no unix.Errno) bool { return errors.Is(err, no) }) {
		return reading.Needless(err)
	}
	return err
}
