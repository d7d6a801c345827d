package wire

import "strconv"

// A HealthState is the state of an agent or of one of its parts.
type HealthState int

// The states.
const (
	StateInit  HealthState = 0 // it starts, is not finished yet, or is not there and nobody needs it
	StateOK    HealthState = 1
	StateError HealthState = 2
)

// String returns the name of the state.
func (s HealthState) String() string {
	switch s {
	case StateInit:
		return "INIT"
	case StateOK:
		return "OK"
	case StateError:
		return "ERROR"
	}
	return strconv.Itoa(int(s)) // of a later version
}

// An AgentStatus is the answer of /liveness and /readiness. Times are seconds since 1970.
type AgentStatus struct {
	BuildVersion string `json:"build_version,omitempty"`
	// In the form of RFC 3339, in UTC.
	BuildDate  string      `json:"build_date,omitempty"`
	State      HealthState `json:"state"`
	StartTime  int64       `json:"start_time,omitempty"`
	LastChange int64       `json:"last_change,omitempty"`
	// The moment of this answer.
	LastUpdate int64          `json:"last_update,omitempty"`
	CommitHash string         `json:"commit_hash,omitempty"`
	Plugins    []PluginHealth `json:"plugins,omitempty"`

	// PluginStatus repeats Plugins with times, by name. NonFatalPlugins names the parts with
	// an error that does not matter now: sources that were lost after a complete listing, and
	// connections that were lost while no declared value needs them.
	PluginStatus    map[string]PluginStatus
	NonFatalPlugins []string

	// Missing is why the agent is not ready, and Unapplied are declared values that it
	// cannot apply. Each has at most 20 lines, and then the number of the others.
	Missing   []string `json:"missing,omitempty"`
	Unapplied []string `json:"unapplied,omitempty"`
}

// A PluginHealth is the state of a part of the agent: a source or a southbound.
type PluginHealth struct {
	Name  string      `json:"name"`
	State HealthState `json:"state"`
	Error string      `json:"error,omitempty"`
}

// A PluginStatus is a PluginHealth with times.
type PluginStatus struct {
	State      HealthState `json:"state"`
	LastChange int64       `json:"last_change,omitempty"`
	LastUpdate int64       `json:"last_update,omitempty"`
	Error      string      `json:"error,omitempty"`
}

// Add adds the state of a part. Since is when it last changed.
func (s *AgentStatus) Add(p PluginHealth, since int64) {
	s.Plugins = append(s.Plugins, p)
	s.PluginStatus[p.Name] = PluginStatus{State: p.State, LastChange: since, LastUpdate: s.LastUpdate, Error: p.Error}
	s.LastChange = max(s.LastChange, since)
}

// A StoredAgent is the value of the key check/status/v1/agent: the status.AgentStatus of vpp-agent
// 3.5, in the JSON of protobuf. Its readers refuse fields that they do not know.
type StoredAgent struct {
	BuildVersion string `json:"build_version,omitempty"`
	BuildDate    string `json:"build_date,omitempty"`
	State        string `json:"state,omitempty"` // OK or ERROR; INIT is left out, as it is 0
	StartTime    int64  `json:"start_time,omitempty,string"`
	LastChange   int64  `json:"last_change,omitempty,string"`
	// A reader sees by it that the agent still runs.
	LastUpdate int64          `json:"last_update,omitempty,string"`
	CommitHash string         `json:"commit_hash,omitempty"`
	Plugins    []StoredPlugin `json:"plugins,omitempty"`
}

// A StoredPlugin is a part of a StoredAgent, with its name, and the value of the key
// check/status/v1/plugin/NAME, with its times.
type StoredPlugin struct {
	Name       string `json:"name,omitempty"`
	State      string `json:"state,omitempty"`
	LastChange int64  `json:"last_change,omitempty,string"`
	LastUpdate int64  `json:"last_update,omitempty,string"`
	Error      string `json:"error,omitempty"`
}

// Stored returns the value for the store.
func (s AgentStatus) Stored() StoredAgent {
	out := StoredAgent{
		BuildVersion: s.BuildVersion, BuildDate: s.BuildDate, State: storedState(s.State), StartTime: s.StartTime,
		LastChange: s.LastChange, LastUpdate: s.LastUpdate, CommitHash: s.CommitHash,
	}
	for _, p := range s.Plugins {
		out.Plugins = append(out.Plugins, StoredPlugin{Name: p.Name, State: storedState(p.State), Error: p.Error})
	}
	return out
}

// Stored returns the value for the store. It changes only with the state.
func (p PluginStatus) Stored() StoredPlugin {
	return StoredPlugin{State: storedState(p.State), LastChange: p.LastChange, LastUpdate: p.LastChange, Error: p.Error}
}

// storedState returns the name of a state; "" for INIT, which the JSON of protobuf leaves out.
func storedState(state HealthState) string {
	if state == StateInit {
		return ""
	}
	return state.String()
}
