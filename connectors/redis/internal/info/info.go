// Package info reads the answer to INFO.
package info

import "strings"

// Field finds "name:value" on a line of its own. It returns "" if there is none, such as
// after a refused INFO.
func Field(about, name string) string {
	for line := range strings.Lines(about) {
		if value, ok := strings.CutPrefix(line, name+":"); ok {
			return strings.TrimSpace(value)
		}
	}
	return ""
}

// ReplicationIDs finds the current and the former replication ID. Zeros mean that there is
// no former one.
func ReplicationIDs(about string) (id, former string) {
	former = Field(about, "master_replid2")
	if strings.Trim(former, "0") == "" {
		former = ""
	}
	return Field(about, "master_replid"), former
}
