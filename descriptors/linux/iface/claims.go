package iface

import (
	"cmp"
	"fmt"

	"github.com/keyplane/keyplane/descriptors/linux/netns"
	"github.com/keyplane/keyplane/proto/ligato/linux/interfaces"
	"github.com/keyplane/keyplane/scheduler"
)

// claims returns the claim on the host name within its namespace. A LOOPBACK claims the
// loopback of its namespace. EXISTING does not give a link a name, so it claims the link of that name among its kind. The kernel would
// refuse the second link of a name, but only after the first one exists; the claim names the conflict at once,
// and the same value wins after each restart.
func claims(_ string, v *interfaces.Interface) []scheduler.Claim {
	where := netns.Identity(v.GetNamespace())
	switch v.GetType() {
	case interfaces.Interface_EXISTING:
		return []scheduler.Claim{nameClaim("linux-existing", v, "a link that no other EXISTING interface has")}
	case interfaces.Interface_LOOPBACK:
		return []scheduler.Claim{{
			Resource: fmt.Sprintf("linux-link/%s/%s", where, loopback), Field: "type", Value: v.GetType().String(), Want: "one LOOPBACK in " + where,
		}}
	default: // the agent gives the link its name
	}
	return []scheduler.Claim{nameClaim("linux-link/"+where, v, "a name that no other interface has in its namespace")}
}

// nameClaim returns the claim on the host name.
func nameClaim(among string, v *interfaces.Interface, want string) scheduler.Claim {
	field, name := "host_if_name", cmp.Or(v.GetHostIfName(), v.GetName())
	if v.GetHostIfName() == "" {
		field = "name"
	}
	return scheduler.Claim{Resource: among + "/" + name, Field: field, Value: name, Want: want}
}
