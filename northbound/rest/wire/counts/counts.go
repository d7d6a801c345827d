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
