package kernel

import (
	"golang.org/x/sys/unix"
)

// AddRoutes implements Kernel.
func (k *real) AddRoutes(routes ...Route) []error {
	messages := make([][]byte, len(routes))
	for i, r := range routes {
		messages[i] = routeMessage(unix.RTM_NEWROUTE, unix.NLM_F_CREATE|unix.NLM_F_EXCL, r)
	}
	errs := k.changes.doAll(messages)
	for i, r := range routes {
		errs[i] = about(errs[i], "adding route %v", r.Dst)
	}
	return errs
}

// AddRouteBeside implements Kernel.
func (k *real) AddRouteBeside(r Route, behind bool) error {
	flags := uint16(unix.NLM_F_CREATE)
	if behind {
		flags |= unix.NLM_F_APPEND
	}
	return about(k.changes.do(routeMessage(unix.RTM_NEWROUTE, flags, r)), "adding route %v", r.Dst)
}

// DelRoute implements Kernel.
func (k *real) DelRoute(r Route) error {
	return about(k.changes.do(routeMessage(unix.RTM_DELROUTE, 0, r)), "removing route %v", r.Dst)
}
