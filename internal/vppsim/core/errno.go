package core

import "go.fd.io/govpp/api"

// Errno is the return value of a reply; 0 is success.
type Errno = api.VPPApiError

const (
	// OK is success.
	OK Errno = 0
	// Crash is no return value. The process of the real VPP ends at such a request, and so
	// does the simulated one.
	Crash Errno = 1 << 30
)

// None is the index that VPP uses for "no interface", and in a request for "all" or "any".
const None = ^uint32(0)
