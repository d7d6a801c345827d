package endpoint

// A Group is a permission that users of http.conf may have. Endpoints name the group that
// a user needs. The first seven names are those of existing deployments.
type Group string

const (
	Info      Group = "info"               // versions, states of sources and of VPP
	Stats     Group = "stats"              // statistics and metrics
	Telemetry Group = "telemetry"          // counters of VPP
	Dump      Group = "dump"               // actual values, their states and history
	Validate  Group = "nbConfigValidation" // validation and plans
	Read      Group = "nbConfigRead"       // declared values
	Write     Group = "nbConfigWrite"      // declare values, resync, retry
	Log       Group = "log"                // list and set log levels
	VPP       Group = "vppCommand"         // VPP's command line and binary API: all of VPP
	Secrets   Group = "secrets"            // see secrets in dumps and configurations

	// Open needs no user: login pages, and probes of supervisors.
	Open Group = ""
	// Any needs any user.
	Any Group = "any"
)

// GroupNames returns the permissions that a user may have, besides admin. Users of
// http.conf get them one by one, or all of them by being admin.
func GroupNames() []string {
	var out []string
	for _, g := range []Group{
		Info, Stats, Telemetry, Dump, Validate, Read, Write, Log, VPP, Secrets,
	} {
		out = append(out, string(g))
	}
	return out
}
