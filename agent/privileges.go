package agent

import (
	"log/slog"
	"os/user"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/keyplane/keyplane/internal/reach"
)

// socketGroup returns the number of the group whose members may open the agent's socket; 0: none. It is for agents of
// root, and those that run with this group: an agent of somebody else stays a matter of that user.
func socketGroup(lookup func(name string) (*user.Group, error), uid, gid int) int {
	group, err := lookup(reach.Group)
	if err != nil {
		return 0 // this host has no such group
	}
	id, err := strconv.Atoi(group.Gid)
	if err != nil || uid != 0 && gid != id {
		return 0
	}
	return id
}

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
