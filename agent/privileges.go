package agent

import (
	"log/slog"
	"strings"

	"golang.org/x/sys/unix"
)

// warnUnprivileged logs one line if the process lacks capabilities that Linux parts need. It goes
// on: an agent for VPP alone needs none of them.
func warnUnprivileged(has func(capability int) bool, log *slog.Logger) {
	var lacking, fails []string
	for _, need := range []struct {
		capability  int
		name, fails string
	}{
		{unix.CAP_NET_ADMIN, "CAP_NET_ADMIN", "changes of Linux links, addresses and routes"},
		{unix.CAP_SYS_ADMIN, "CAP_SYS_ADMIN", "network namespaces"},
	} {
		if !has(need.capability) {
			lacking, fails = append(lacking, need.name), append(fails, need.fails)
		}
	}
	if len(lacking) > 0 {
		log.Warn("the agent lacks privileges; run it as root, or in a user namespace (unshare -rn)",
			"lacking", strings.Join(lacking, ", "), "fails", strings.Join(fails, ", "))
	}
}
