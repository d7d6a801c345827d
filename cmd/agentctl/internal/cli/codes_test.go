package cli_test

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/keyplane/keyplane/cmd/agentctl/internal/session"
)

// TestExitCodesAreOneTable compares the table of exit codes with the commands whose code tells whether there are changes: for all
// others 2 is a wrong command line.
func TestExitCodesAreOneTable(t *testing.T) {
	text, err := os.ReadFile("../../../../docs/agentctl.md")
	if err != nil {
		t.Fatal(err)
	}
	_, table, _ := strings.Cut(string(text), "\n## Exit codes\n")
	row := regexp.MustCompile(`(?m)^\| (.*) \| no changes \|`).FindStringSubmatch(table)
	if row == nil {
		t.Fatal("docs/agentctl.md has no table of exit codes with a row for commands that tell changes")
	}
	var documented, told []string
	for _, quoted := range regexp.MustCompile("`([^`]+)`").FindAllStringSubmatch(row[1], -1) {
		documented = append(documented, "agentctl "+quoted[1])
	}
	for c := range commands(tree()) {
		if _, tells := c.Annotations[session.TellsChanges]; tells {
			told = append(told, c.CommandPath())
		}
	}
	slices.Sort(documented)
	slices.Sort(told)
	if !slices.Equal(documented, told) {
		t.Errorf("the table has %q, and the code 2 means changes for %q", documented, told)
	}
}
