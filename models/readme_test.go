package models_test

import (
	"cmp"
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/keyplane/keyplane/models"
)

// The table in README.md is what the models are; -update writes it anew.
var update = flag.Bool("update", false, "write the table of README.md")

const (
	tableBegin = "<!-- table of models -->\n"
	tableEnd   = "<!-- end of table -->\n"
)

func TestReadmeListsTheModels(t *testing.T) {
	data, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	before, rest, ok := strings.Cut(string(data), tableBegin)
	got, after, ok2 := strings.Cut(rest, tableEnd)
	if !ok || !ok2 {
		t.Fatal("README.md has no place for the table")
	}
	want := modelTable()
	if got == want {
		return
	}
	if !*update {
		t.Fatalf("table of README.md is out of date: run go test -run %s -update", t.Name())
	}
	if err := os.WriteFile("README.md", []byte(before+tableBegin+want+tableEnd+after), 0o644); err != nil {
		t.Fatal(err)
	}
}

func modelTable() string {
	var b strings.Builder
	b.WriteString("| model | key | message | structured form |\n|---|---|---|---|\n")
	for _, m := range models.BuiltIn().All() {
		group, field := m.ConfigField()
		fmt.Fprintf(&b, "| %s | `%s%s` | [%s](../proto/%s) | %s |\n",
			m.Name(), m.Prefix(), m.NameTemplate(), m.ProtoName(), m.ProtoFile(), cmp.Or(strings.Trim(group+"."+field, "."), "-"))
	}
	return b.String()
}
