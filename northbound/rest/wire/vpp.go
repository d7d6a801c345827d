package wire

import "time"

// VPP is the state of the agent's connection to VPP.
type VPP struct {
	Connected bool
	Since     time.Time // time of the last change of Connected
	// The path of VPP's binary API socket.
	Socket  string
	Version string `json:",omitempty"` // of the current or the last connection, like the fields up to Messages
	// As VPP reports it, in the form of its own build; it is not parsed.
	BuildDate string `json:",omitempty"`
	// The process ID of VPP. A new number with an unchanged version means that VPP has
	// restarted.
	PID         uint32 `json:",omitempty"`
	Messages    int    `json:",omitempty"` // number of messages that VPP supports
	Connections int    // number of connections since the start
	// The reason of the last interruption or failed attempt. It stays after a reconnection.
	LastError    string `json:",omitempty"`
	LastErrorAt  time.Time
	Capabilities []Capability // empty while VPP is not connected, like Plugins
	Plugins      []Plugin     // loaded plugins
	NoPlugins    string       `json:",omitempty"` // reason why Plugins is unknown
}

// A Capability reports whether VPP supports a feature.
type Capability struct {
	Feature string
	Message string // name and checksum of the message in use, or of the newest variant
	Has     bool   // false: values of the feature are UNIMPLEMENTED
}

// A Plugin is a plugin that VPP has loaded, as VPP reports it.
type Plugin struct {
	Name        string // "memif_plugin.so"
	Version     string
	Description string
}
