package show

import (
	"fmt"
	"strings"
	"time"

	"github.com/keyplane/keyplane/northbound/rest/wire"
)

// Unknown returns a line for each reason why kinds of values are unknown, with these kinds and the time.
func Unknown(kinds []wire.Unknown) (lines []string) {
	type cause struct {
		why   string
		since time.Time
	}
	var causes []cause
	of := map[cause][]string{}
	for _, k := range kinds {
		c := cause{k.Reason, k.Since}
		if of[c] == nil {
			causes = append(causes, c)
		}
		of[c] = append(of[c], Line(k.Descriptor))
	}
	for _, c := range causes {
		lines = append(lines, fmt.Sprintf("nobody knows which values exist of %s: %s, since %s (%s ago)",
			strings.Join(of[c], ", "), Remote(c.why), c.since.UTC().Format(time.RFC3339), Short(time.Since(c.since))))
	}
	return lines
}
