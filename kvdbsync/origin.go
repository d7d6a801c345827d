package kvdbsync

import (
	"strconv"
	"unique"
)

// An Origin is a line of a file in which a value stands, for people. The zero Origin is
// that of a value whose key says it all. All values of a file share its name.
type Origin struct {
	File unique.Handle[string]
	Line int
}

// String is like "routes.yaml:12"; empty for the zero Origin.
func (o Origin) String() string {
	if o == (Origin{}) {
		return ""
	}
	return o.File.Value() + ":" + strconv.Itoa(o.Line)
}
