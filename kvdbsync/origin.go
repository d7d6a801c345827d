package kvdbsync

import (
	"strconv"
	"unique"
)

// An Origin is the line of a file that has the value, for people. It is empty if the key
// is the place. All values of a file share its name.
type Origin struct {
	File unique.Handle[string]
	Line int
}

// String returns text like "routes.yaml:12", or "" for the zero Origin.
func (o Origin) String() string {
	if o == (Origin{}) {
		return ""
	}
	return o.File.Value() + ":" + strconv.Itoa(o.Line)
}
