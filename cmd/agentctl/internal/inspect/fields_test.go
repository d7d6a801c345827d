package inspect

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/keyplane/keyplane/models"
	"github.com/keyplane/keyplane/northbound/rest/wire"
)

// TestFieldsFitATerminal describes every model. No line is wider than 80 columns, and no text is
// lost where cells continue in the next line.
func TestFieldsFitATerminal(t *testing.T) {
	for _, m := range models.BuiltIn().All() {
		described, err := describeModels(nil, []wire.Model{{Name: m.Name(), KeyPrefix: m.Prefix(), NameTemplate: m.NameTemplate()}})
		if err != nil {
			t.Fatal(err)
		}
		var out strings.Builder
		if err := fieldTables(&out, described, false); err != nil {
			t.Fatal(err)
		}
		for _, f := range described[0].Fields {
			if name := f.Name[strings.LastIndexByte(f.Name, '.')+1:]; !strings.Contains(out.String(), name) {
				t.Errorf("%s: the name %s is broken:\n%s", m.Name(), name, &out)
			}
		}
		for line := range strings.Lines(out.String()) {
			if n := utf8.RuneCountInString(strings.TrimSuffix(line, "\n")); n > 80 {
				t.Errorf("%s: %d columns: %s", m.Name(), n, line)
			}
		}
	}
	if got := wrap("  a bc defghij", 5); strings.Join(got, "|") != "  a|bc|defgh|ij" {
		t.Errorf("%q", got)
	}
	if got := wrap("OFFLOAD_DEFAULT", 10); strings.Join(got, "|") != "OFFLOAD_|DEFAULT" {
		t.Errorf("%q", got)
	}
}

// TestFieldsOfVRRP is the table of one model.
func TestFieldsOfVRRP(t *testing.T) {
	described, err := describeModels(nil, []wire.Model{{Name: "vpp.vrrp"}})
	if err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	writeFields(&out, described[0].Fields[:4], 0)
	want := `FIELD (*: required) TYPE      ALLOWED                    DEFAULT EXAMPLE
interface*          string                                       tap1
vr_id*              uint32    1..255                             7
priority*           uint32    1..255                             100
interval*           uint32    10..65535 milliseconds             1000
`
	if got := out.String(); strings.Join(strings.Fields(got), " ") != strings.Join(strings.Fields(want), " ") {
		t.Errorf("got:\n%s\nwant:\n%s", got, want)
	}
}

// TestShortNamesLeaveRoom has no broken word where the names of a model need less than their column.
func TestShortNamesLeaveRoom(t *testing.T) {
	described, err := describeModels(nil, []wire.Model{{Name: "linux.l3.route"}})
	if err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	writeFields(&out, described[0].Fields, 0)
	for _, whole := range []string{" UNDEFINED GLOBAL\n", " alloc:NETWORK/INTERFACE\n"} {
		if !strings.Contains(out.String(), whole) {
			t.Errorf("%q is broken:\n%s", whole, &out)
		}
	}
	for line := range strings.Lines(out.String()) {
		if len(line) > 81 {
			t.Errorf("wider than a terminal: %s", line)
		}
	}
}

// TestWideTerminalsBreakNoWord has each word of each model whole on a terminal of 140 columns.
func TestWideTerminalsBreakNoWord(t *testing.T) {
	for _, m := range models.BuiltIn().All() {
		described, err := describeModels(nil, []wire.Model{{Name: m.Name()}})
		if err != nil {
			t.Fatal(err)
		}
		var out strings.Builder
		writeFields(&out, described[0].Fields, 60)
		for _, f := range described[0].Fields {
			for _, word := range []string{f.Default, f.Example, f.Name[strings.LastIndexByte(f.Name, '.')+1:]} {
				if !strings.Contains(out.String(), word) && !strings.Contains(word, " ") {
					t.Errorf("%s: %s of %s is broken:\n%s", m.Name(), word, f.Name, &out)
				}
			}
		}
		for line := range strings.Lines(out.String()) {
			if n := utf8.RuneCountInString(strings.TrimSuffix(line, "\n")); n > 140 {
				t.Errorf("%s: %d columns: %s", m.Name(), n, line)
			}
		}
	}
}
