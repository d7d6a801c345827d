// Package counts has the JSON of GET /stats and its relatives: counters of the agent, of its
// connection to VPP, and of the kernel.
package counts

// Stats are counters of the scheduler since its start.
type Stats struct {
	TxnStats       TxnStats
	GraphMethods   []Method            // always empty, kept for compatibility
	AllDescriptors []Method            // sums over all descriptors
	Descriptors    map[string][]Method // durations of verbs by descriptor
}

// TxnStats are counters of transactions.
type TxnStats struct {
	// Transactions since the start, also those that the history has dropped.
	TotalProcessed  uint64
	OperationCount  map[string]uint64 // by name of the operation
	ValueStateCount map[string]uint64 // current number of values by state
	ErrorCount      uint64            // failed operations
	Methods         []Method          // durations by type, for transactions in the history
	// Unwritten counts transactions that are missing from the transaction log,
	// entirely or in part. LatePlans counts those that were executed before their
	// plan was written. Both mean that the reader of the log is too slow.
	Unwritten uint64 `json:",omitempty"`
	LatePlans uint64 `json:",omitempty"`
}

// A Method is the duration of a verb or of a kind of transaction, in seconds.
type Method struct {
	Name string `json:"name"`
	// Avg is Total divided by Count. All four durations are 0 if Count is.
	Count uint64  `json:"count"`
	Total float64 `json:"total"`
	Avg   float64 `json:"avg"`
	Min   float64 `json:"min"`
	Max   float64 `json:"max"`
}

// A ConfiguratorStats counts the changes of the configuration by clients.
type ConfiguratorStats struct {
	AllOperations Method
	Operations    []Method // by name: "Delete", "Resync", "Update"
}

// A MuxStats counts requests to VPP. The lists are sorted by name.
type MuxStats struct {
	ChannelsCreated uint64 `json:"channels_created"` // connections
	// Connections that are open now. The other figures count since the start of the agent.
	ChannelsOpen uint64 `json:"channels_open"`
	RequestsSent uint64 `json:"requests_sent"`
	RequestsDone uint64 `json:"requests_done"`
	RequestsFail uint64 `json:"requests_fail"`
	// Messages that VPP sent as answers. One request for a dump has many.
	RequestReplies uint64 `json:"request_replies"`
	// All requests that VPP has carried out, and their time by message.
	AllMessages Method
	Messages    []Method
	Errors      []MessageErrors // only those with errors
}

// A MessageErrors counts the failed requests with one message.
type MessageErrors struct {
	Name  string `json:"name"`
	Count uint64 `json:"count"`
}

// A CommandOutput is a line of VPP's command line and what VPP printed, or the reason why it could
// not be asked.
type CommandOutput struct {
	Command, Output string
}

// A LinuxInterfaceStats holds the kernel's counters of an interface.
type LinuxInterfaceStats struct {
	Name  string `json:"interface_name"`
	Type  int32  `json:"interface_type"` // ligato.linux.interfaces.Interface.Type
	Index int    `json:"linux_if_index"` // the kernel's ifindex
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
	HostName  string `json:"host_name"`
}
