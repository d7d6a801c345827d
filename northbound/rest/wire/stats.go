package wire

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
