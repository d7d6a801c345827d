package wire

import "time"

// VPP is how the agent's VPP is.
type VPP struct {
	Connected    bool
	Since        time.Time // of Connected
	Socket       string
	Version      string `json:",omitempty"` // of this connection, or of the last one, as all up to Messages
	BuildDate    string `json:",omitempty"`
	PID          uint32 `json:",omitempty"`
	Messages     int    `json:",omitempty"` // that it knows
	Connections  int    // so many there have been
	LastError    string `json:",omitempty"`
	LastErrorAt  time.Time
	Capabilities []Capability // none while VPP is not connected, nor Plugins
	Plugins      []Plugin     // that it has loaded
	NoPlugins    string       `json:",omitempty"` // why they are not known
}

// A Capability is whether VPP has what a feature takes.
type Capability struct {
	Feature string
	Message string // with its checksum; of the variants the one that is used, or the newest
	Has     bool   // false: what needs it is UNIMPLEMENTED
}

// A Plugin is one that VPP has loaded, as VPP says.
type Plugin struct {
	Name        string // "memif_plugin.so"
	Version     string
	Description string
}
