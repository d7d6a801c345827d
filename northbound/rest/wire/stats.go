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
