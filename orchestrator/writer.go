package orchestrator

import "fmt"

// writer says who wrote values, for people: "etcd, revision 57", "etcd, revisions 55 to 57" of changes that were taken
// together, or "agentctl, by root (pid 4242)". The history, the log and explanations have it. by and the revisions
// are empty and 0 if they are not known.
func writer(source, by string, first, last int64) string {
	switch {
	case by != "":
		return source + ", by " + by
	case last == 0:
		return source
	case first == last:
		return fmt.Sprintf("%s, revision %d", source, last)
	}
	return fmt.Sprintf("%s, revisions %d to %d", source, first, last)
}
