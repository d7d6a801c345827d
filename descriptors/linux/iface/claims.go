package iface

import (
	"cmp"
	"fmt"

	"github.com/keyplane/keyplane/descriptors/linux/netns"
	"github.com/keyplane/keyplane/proto/ligato/linux/interfaces"
	"github.com/keyplane/keyplane/scheduler"
)

// claims returns the claim on the host name within its namespace. EXISTING and LOOPBACK
// claim nothing: they do not give a link a name. The kernel would refuse the second link
// of that name, but only after the first one exists; the claim names the conflict at once,
// and the same value wins after each restart.
func claims(_ string, v *interfaces.Interface) []scheduler.Claim {
	if v.GetType() == interfaces.Interface_EXISTING || v.GetType() == interfaces.Interface_LOOPBACK {
		return nil
	}
	field, name := "host_if_name", cmp.Or(v.GetHostIfName(), v.GetName())
	if v.GetHostIfName() == "" {
		field = "name"
	}
	where := netns.Text(v.GetNamespace())
	return []scheduler.Claim{{
		Resource: fmt.Sprintf("linux-link/%s/%s", where, name), Field: field, Value: name,
		Want: "a name that no other interface has in " + where,
	}}
}
