package kind

import "time"

const (
	// restPerReading is how many times as long as a read-back a connection is left to its verbs after it.
	restPerReading = 3
	// longestRest is the longest time for that: what somebody has deleted is to be back within a second.
	longestRest = 300 * time.Millisecond
)

// A Rest keeps notifications, of which there may be any number, from having a connection read back all the time: no verb begins
// meanwhile. One read-back serves all that come until the rest after the one before is over. Other read-backs, such as those after
// failed verbs, neither rest nor wait for that. The zero value does not rest.
type Rest struct {
	reading bool            // a read-back for notifications is wanted, and has not ended
	claimed time.Time       // when it has got the connection; zero: it has not
	until   time.Time       // the end of the rest after the last one
	later   map[string]bool // names of descriptors that wait for that
}

// Ask asks for a read-back of a descriptor, and reports whether it may come now. Otherwise it waits, and if rest is not 0, somebody
// must ask again after that time.
func (r *Rest) Ask(name string) (now bool, rest time.Duration) {
	rest = time.Until(r.until)
	if !r.reading && rest <= 0 {
		return true, 0
	}
	if r.reading || len(r.later) > 0 { // End, or who asked before, has said when
		rest = 0
	}
	if r.later == nil {
		r.later = map[string]bool{}
	}
	r.later[name] = true
	return false, rest
}

// Take returns the names that wait. They wait no more.
func (r *Rest) Take() (names map[string]bool) {
	names, r.later = r.later, nil
	return names
}

// Begin notes that a read-back for notifications is wanted. End follows.
func (r *Rest) Begin() { r.reading, r.claimed = true, time.Time{} }

// Claim notes that it has got the connection. If it gives that up and gets it again, only the last time counts.
func (r *Rest) Claim() { r.claimed = time.Now() }

// End notes that it has ended. If a name is returned, that of a descriptor that waits, somebody must ask for it after the rest.
func (r *Rest) End() (name string, rest time.Duration) {
	if r.reading = false; !r.claimed.IsZero() {
		rest = min(restPerReading*time.Since(r.claimed), longestRest)
	}
	r.until = time.Now().Add(rest)
	for name = range r.later {
		break
	}
	return name, rest
}
