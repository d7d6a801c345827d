package wire

// Nothing is the empty object that a request without a result answers.
type Nothing struct{}

// A LogLevel is the level of a logger.
type LogLevel struct {
	Logger string `json:"logger"`
	Level  string `json:"level"`
}

// A Command is the body of POST /vpp/command.
type Command struct {
	Line string `json:"vppclicommand"` // such as "show version"
}

// A ConfigError is an error in the body of POST /configuration/validate.
type ConfigError struct {
	Path        string `json:"path"` // of the field: "vppConfig.interfaces[0].mtu"
	Error       string `json:"error"`
	Part        string `json:"error_config_part,omitempty"`         // the value with the error
	DerivedPart string `json:"error_derived_config_part,omitempty"` // the derived value with the error
}

// A ConfiguratorStats counts the changes of the configuration by clients.
type ConfiguratorStats struct {
	AllOperations Method
	Operations    map[string]Method // by operation: "Update"
}

// A MuxStats counts requests to VPP.
type MuxStats struct {
	ChannelsCreated uint64 // connections
	// Connections that are open now. The other figures count since the start of the agent.
	ChannelsOpen   uint64
	RequestsSent   uint64
	RequestsDone   uint64
	RequestsErrors uint64
	// Messages that VPP sent as answers. One request for a dump has many.
	RequestReplies uint64
	Messages       map[string]MessageStats // by name
}

// A MessageStats counts the requests with one message.
type MessageStats struct {
	Calls, Errors uint64
}

// A LinuxInterfaceStats holds the kernel's counters of an interface.
type LinuxInterfaceStats struct {
	Name     string `json:"logical_name"`
	HostName string `json:"host_name"`
	// The link statistics of rtnetlink(7). They begin when the kernel creates the interface,
	// not when the agent starts.
	RxPackets uint64 `json:"rx_packets"`
	TxPackets uint64 `json:"tx_packets"`
	RxBytes   uint64 `json:"rx_bytes"`
	TxBytes   uint64 `json:"tx_bytes"`
	RxErrors  uint64 `json:"rx_errors"`
	TxErrors  uint64 `json:"tx_errors"`
	RxDropped uint64 `json:"rx_dropped"`
	TxDropped uint64 `json:"tx_dropped"`
}
