package orchestrator

import (
	"fmt"
	"maps"
	"strconv"
	"strings"

	"github.com/keyplane/keyplane/kvdbsync"
)

// A data says which data a source has: the revision and the identity of its store, as
// of a listing that left no doubt. The memory keeps it as text, "57 cafe"; empty means
// that nothing is known.
type data string

func dataIn(l kvdbsync.Listing) data {
	if l.Rev == 0 && l.Identity == "" {
		return ""
	}
	return data(fmt.Sprintf("%d %s", l.Rev, l.Identity))
}

// listing is what can be compared with a later one.
func (d data) listing() (l kvdbsync.Listing) {
	rev, identity, _ := strings.Cut(string(d), " ")
	l.Rev, _ = strconv.ParseInt(rev, 10, 64) // 0 if nothing is known
	l.Identity = identity
	return l
}

// learnData has the memory know which data a layer has, once nothing of it is in doubt:
// a listing after a restart is to be distrusted for the same reason as before it.
func (o *Orchestrator) learnData(l *layer, c kvdbsync.Change) {
	now := dataIn(c.Listing)
	if o.memory == nil || !c.Resynced || len(l.doubts) > 0 || len(l.past) > 0 || now == "" || now == l.data {
		return
	}
	l.data = now
	o.save(maps.All(map[string][]byte{memoryKey(l.Name, dataOf, ""): []byte(now)}))
}
