package filedb

import (
	"errors"
	"maps"
	"slices"

	"github.com/keyplane/keyplane/kvdbsync"
)

// ErrVanished ends a watch of which several files vanished together, or whose folder is
// another one. Nobody can tell whether somebody removed these files for good, a slow
// copy is about to bring them back, or a volume was unmounted. So the watch does not say
// that their keys were deleted. The next listing lacks them, and whoever compares it
// with the one before decides whether that is credible.
var ErrVanished = errors.New("files vanished together: listing what is there")

// depart decides about the files that were there and that the snapshot no longer has.
// It returns the files that count, and whether keys that go with them are for a listing
// to find out.
//
// A file that vanishes alone was removed by somebody: it no longer counts. As long as
// other files may be about to vanish (each is waited for, for Config.VanishGrace), a
// file that has vanished still counts, so that files which vanish one after the other
// vanish together. When the folder is another one, all files count as they were until
// it is known which of them it lacks.
func (v *view) depart(s *snapshot) (files map[string]file, together bool) {
	if v.files == nil {
		v.folders = s.folders
		return s.files, false
	}
	leaving := slices.ContainsFunc(slices.Collect(maps.Values(s.files)), func(f file) bool { return f.state == gone })
	left := map[string]file{}
	for path, f := range v.files {
		if _, there := s.files[path]; !there {
			left[path] = f
		}
	}
	moved := v.folders != s.folders
	switch {
	case leaving && moved:
		return v.files, false
	case leaving && len(left) > 0:
		files = maps.Clone(s.files)
		maps.Copy(files, left)
		return files, false
	case !leaving:
		v.folders = s.folders
	}
	return s.files, moved || len(left) > 1
}

// removes tells whether a batch removes a key.
func removes(b kvdbsync.Batch) bool {
	return slices.ContainsFunc(b.Events, func(e kvdbsync.Event) bool { return e.Value == nil && e.Err == nil })
}
