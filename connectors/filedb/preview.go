package filedb

import (
	"context"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"github.com/keyplane/keyplane/kvdbsync"
	"github.com/keyplane/keyplane/models/structured/document"
)

// WithFile returns the content that the source would have under a prefix if a file had the text
// data: one event for each effective key of all files. Nothing is written. problems say why parts
// of the text, or all of it, would have no effect, and warnings name parts for other programs and lenient
// notations; each begins with the path. The error is that of ctx, or names a path that no configured one
// contains.
func (db *DB) WithFile(ctx context.Context, prefix, path string, data []byte) (events []kvdbsync.Event, problems, warnings []error, err error) {
	s, err := db.look(ctx, reason{everything: true})
	if err != nil {
		return nil, nil, nil, err
	}
	path, err = db.placeOf(s.files, path)
	if err != nil {
		return nil, nil, nil, err
	}
	all := maps.Clone(s.files)
	f := *all.at(path)
	content, err := db.parse(ctx, path, data)
	if err == nil {
		err = content.cutFrom(f.good, false)
	}
	switch {
	case ctx.Err() != nil:
		return nil, nil, nil, ctx.Err()
	case err != nil:
		problems = []error{err} // the last content stays
	default:
		problems, warnings = content.problems, content.warnings
		f.good, f.state = content.orOf(f.good), final
		all[path] = &f
	}
	merged := newMerger(prefix)
	events = merged.update(all)
	return events, append(slices.Clip(problems), merged.conflictsOf(path)...), warnings, nil
}

// placeOf returns the path of a file as it is configured and listed. The file may be new.
func (db *DB) placeOf(all files, path string) (string, error) {
	want := absolute(path)
	for known := range all {
		if known == path || absolute(known) == want {
			return known, nil
		}
	}
	for _, configured := range db.cfg.Paths {
		base := absolute(configured)
		if rest, below := strings.CutPrefix(want, base+"/"); below {
			path = filepath.Join(configured, rest)
		} else if want != base {
			continue
		}
		if _, ok := document.FormatOf(path); !ok {
			return "", fmt.Errorf("%s: expected a name that ends with .yaml, .yml or .json", path)
		}
		return path, nil
	}
	return "", fmt.Errorf("%s: expected a file in %s", path, strings.Join(db.cfg.Paths, " or "))
}

// absolute returns a path from the root. A path that cannot be made so is returned cleaned.
func absolute(path string) string {
	if out, err := filepath.Abs(path); err == nil {
		return out
	}
	return filepath.Clean(path)
}
