package rest

// A group is a permission that users of http.conf may have. Endpoints name the group that
// a user needs. The first seven names are those of existing deployments.
type group string

const (
	groupInfo     group = "info"               // versions, states of sources and of VPP
	groupStats    group = "stats"              // statistics and metrics
	groupTelem    group = "telemetry"          // counters of VPP
	groupDump     group = "dump"               // actual values, their states and history
	groupValidate group = "nbConfigValidation" // validation and plans
	groupRead     group = "nbConfigRead"       // declared values
	groupWrite    group = "nbConfigWrite"      //nolint:gosec // a permission: declare values, resync, retry
	groupLog      group = "log"                // list and set log levels
	groupVPP      group = "vppCommand"         // VPP's command line and binary API: all of VPP
	groupSecrets  group = "secrets"            // see secrets in dumps and configurations

	// groupOpen needs no user: login pages, and probes of supervisors.
	groupOpen group = ""
	// groupAny needs any user.
	groupAny group = "any"
)

// groupNames returns the permissions that a user may have, besides admin.
func groupNames() []string {
	var out []string
	for _, g := range []group{
		groupInfo, groupStats, groupTelem, groupDump, groupValidate, groupRead, groupWrite, groupLog, groupVPP, groupSecrets,
	} {
		out = append(out, string(g))
	}
	return out
}
