package faults

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/keyplane/keyplane/internal/faults/stores"
)

func TestTable(t *testing.T) {
	kinds := []stores.Kind{{Name: "one", Can: stores.Servers}, {Name: "two", Can: stores.CutDrop}}
	faults := []Fault{{Name: "killed", Needs: stores.Servers}, {Name: "cut", OneOf: stores.CutAny}, {Name: "flood"}}
	var r Results
	r.Add("one", "killed", 1234*time.Millisecond, false)
	r.Add("two", "cut", 0, true)
	r.Add("one", "flood", 12*time.Millisecond, false)
	r.Add("two", "flood", time.Microsecond, false)
	const want = `| | one | two |
|---|---|---|
| killed | 1.2 s | – |
| cut | – | **lost** |
| flood | 12 ms | at once |
`
	got := r.Markdown(kinds, faults)
	if got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}

	path := filepath.Join(t.TempDir(), "doc.md")
	write := func(text string) {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("before\n" + tableBegins + "old\n" + tableEnds + "after\n")
	if err := Put(path, got); err != nil {
		t.Fatal(err)
	}
	if text, err := os.ReadFile(path); err != nil || string(text) != "before\n"+tableBegins+want+tableEnds+"after\n" {
		t.Errorf("%v\n%s", err, text)
	}
	write("nothing")
	if err := Put(path, got); err == nil {
		t.Error("written to where there is no place")
	}
}
