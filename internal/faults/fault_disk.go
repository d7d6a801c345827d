package faults

import (
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/keyplane/keyplane/internal/faults/history"
	"github.com/keyplane/keyplane/internal/faults/stores"
)

// diskFaults are faults of the disk with the agent's own store.
func diskFaults() []Fault {
	return []Fault{{Name: "disk full, and free again", Needs: stores.SmallDisk, Do: diskFull}}
}

// diskFull fills the disk. Further writes fail, and the content before stays.
func diskFull(r *Run) {
	ballast := filepath.Join(r.Store.Dir, "ballast")
	if err := os.WriteFile(ballast, make([]byte, 4<<20), 0o600); err == nil {
		r.Fatal("the disk takes more than it should")
	}
	refused := 0
	for i := range 20 {
		large := history.Change{Key: r.name(i), Text: r.text() + strings.Repeat("x", 100_000)}
		begun := time.Now()
		if err := r.Store.Write(r.ctx, large); err != nil {
			refused++
			continue
		}
		r.wrote(begun, large)
	}
	if refused == 0 {
		r.Error("a full disk took everything")
	}
	r.await("the writes before the disk was full")
	if err := os.Remove(ballast); err != nil {
		r.Fatal(err)
	}
	r.heal()
	r.churn(30)
}
