// Package stream has the events of GET /events: their names and their JSON. Each one tells only
// that something has changed; a client reads the rest from the other paths.
package stream

// Names of the events of GET /events. Each event is a JSON object of the type below it.
const (
	NameHello        = "hello"        // Hello
	NameValues       = "values"       // ValuesChanged
	NameTransactions = "transactions" // TransactionsEnded
	NameSources      = "sources"      // SourcesChanged
	NameConnections  = "connections"  // ConnectionsChanged
)

// A Hello is the first event of each stream, also after an interruption. A client reads
// everything that it shows after it: later changes have events.
type Hello struct {
	Label       string
	States      map[string]uint64 // number of values by state
	Connections map[string]bool   // ready or not, by name
}

// ValuesChanged says which values have changed since the event before.
type ValuesChanged struct {
	// Changed is sorted by key. It is empty if Missed.
	Changed []ValueChange
	// Missed means that more values have changed than one event can name. Any value may be
	// among them, so the client reads again everything that it shows.
	Missed bool
	// States is the number of values by state.
	States map[string]uint64
}

// A ValueChange is the newest state of a value; REMOVED if it is gone.
type ValueChange struct{ Key, State string }

// TransactionsEnded says how many transactions have ended since the event before. The history
// has them.
type TransactionsEnded struct{ Count uint64 }

// SourcesChanged names the sources with another state or content than before.
type SourcesChanged struct{ Names []string }

// ConnectionsChanged has the state of each connection: ready or not.
type ConnectionsChanged struct{ Connections map[string]bool }
