package filedb

import (
	"context"
	"maps"
	"slices"
	"strings"

	"github.com/keyplane/keyplane/kvdbsync"
)

// Beside implements kvdbsync.Browser. It scans all keys, which are in memory.
func (db *DB) Beside(ctx context.Context, prefix string, known []string) ([]string, error) {
	s, err := db.look(ctx, reason{})
	if err != nil {
		return nil, err
	}
	names := map[string]bool{}
	for _, f := range s.files {
		if f.good == nil {
			continue
		}
		for i := range f.good.entries {
			rest, below := strings.CutPrefix(f.good.entries[i].key, prefix)
			if name, unknown := kvdbsync.FolderOf(rest, known); below && unknown {
				names[name] = true
			}
		}
	}
	sorted := slices.Sorted(maps.Keys(names))
	return sorted[:min(len(sorted), kvdbsync.MostBeside)], nil
}
