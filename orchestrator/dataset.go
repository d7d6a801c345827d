package orchestrator

import (
	"fmt"
	"maps"
	"strconv"
	"strings"

	"github.com/keyplane/keyplane/kvdbsync"
)

// A dataset identifies the content of a store: its revision and the identity of the store,
// as of a listing without doubts. The Memory keeps it as text: "57 cafe". Empty means
// unknown.
type dataset string

// datasetOf returns the identity of the store and its revision as one text; empty: the
// store has neither, so listings cannot be compared.
func datasetOf(l kvdbsync.Listing) dataset {
	if l.Rev == 0 && l.Identity == "" {
		return ""
	}
	return dataset(fmt.Sprintf("%d %s", l.Rev, l.Identity))
}

// listing returns the dataset in the form that is compared with later listings.
func (d dataset) listing() (l kvdbsync.Listing) {
	rev, identity, _ := strings.Cut(string(d), " ")
	l.Rev, _ = strconv.ParseInt(rev, 10, 64) // 0 if unknown
	l.Identity = identity
	return l
}

// saveDataset saves the dataset of a source when none of its keys are in doubt. So the
// first listing after a restart can be distrusted for the same reasons as any other.
func (o *Orchestrator) saveDataset(l *source, listing kvdbsync.Listing) {
	now := datasetOf(listing)
	if o.memory == nil || len(l.doubts) > 0 || len(l.saved) > 0 || now == "" || now == l.dataset {
		return
	}
	l.dataset = now
	o.save(maps.All(map[string][]byte{memoryKey(l.Name, dataOf, ""): []byte(now)}))
}
