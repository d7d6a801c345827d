package wire

// Stats count what the scheduler has done since it began.
type Stats struct {
	TxnStats       TxnStats
	GraphMethods   []Method // none
	AllDescriptors []Method // the verbs of all descriptors
	Descriptors    map[string][]Method
}

// TxnStats are about transactions.
type TxnStats struct {
	TotalProcessed  uint64
	OperationCount  map[string]uint64 // by name of the operation
	ValueStateCount map[string]uint64 // how many values are in a state now
	ErrorCount      uint64            // of operations that failed
	Methods         []Method          // transactions by type, of those that the history still has
	// Unwritten are the transactions that are missing in the transaction log, in whole or in
	// part, and LatePlans those that were executed before their plan was written to it:
	// whoever reads it is too slow.
	Unwritten uint64 `json:",omitempty"`
	LatePlans uint64 `json:",omitempty"`
}

// A Method says how long something took, in seconds.
type Method struct {
	Name  string  `json:"name"`
	Count uint64  `json:"count"`
	Total float64 `json:"total"`
	Avg   float64 `json:"avg"`
	Min   float64 `json:"min"`
	Max   float64 `json:"max"`
}
