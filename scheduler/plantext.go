package scheduler

import "strings"

// PlanText renders what is planned as text, in the form of Text, with at most
// limit operations (0: none, negative: all).
func (r *Record) PlanText(limit int) string {
	var b strings.Builder
	b.WriteString("  * planned operations:\n")
	operationsText(&b, r.Planned, limit)
	return b.String()
}
