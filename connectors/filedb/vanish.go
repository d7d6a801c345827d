package filedb

import (
	"errors"
	"maps"
	"slices"

	"github.com/keyplane/keyplane/kvdbsync"
)

// ErrVanished ends a watch when several of its files vanished together, or when its folder
// was replaced by another one. The cause is unknown: a permanent removal, a slow copy that
// will restore the files, or an unmounted volume. So the watch does not report their keys
// as deleted. The next listing lacks them, and the reader of the watch decides whether
// that is credible.
var ErrVanished = errors.New("files vanished together: listing the rest")

// settle makes the files of a snapshot the effective ones, and returns whether the removal of keys must wait for a listing.
func (v *view) settle(s *snapshot) (together bool) {
	s.files, together = v.depart(s)
	if !together {
		s.files = v.hold(s.files)
	}
	return together
}

// depart decides about files that the snapshot no longer has. It returns the effective
// files, and whether the removal of their keys must wait for a listing.
//
// A file that vanishes alone was removed on purpose, and loses its effect. While other
// files may be about to vanish (for Config.VanishGrace each), a vanished file stays
// effective. So files that vanish one after the other count as vanished together. When the
// folder is another one, all files stay effective until the missing ones are known.
func (v *view) depart(s *snapshot) (now files, together bool) {
	if v.files == nil {
		v.folders = s.folders
		return s.files, false
	}
	leaving := slices.ContainsFunc(slices.Collect(maps.Values(s.files)), func(f *file) bool { return f.state == gone })
	left := files{}
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
		now = maps.Clone(s.files)
		maps.Copy(now, left)
		return now, false
	case !leaving:
		v.folders = s.folders
	}
	return s.files, moved || len(left) > 1
}

// hold returns the files of a snapshot that are effective: one from which keys are gone is so in its last version, while it
// is shrunk and no other file has these keys. A tool that changes several files, such as git or rsync, writes one after the
// other; a key that it moves is in none of them for a moment. The whole file is held, because the changes of one file take
// effect together.
func (v *view) hold(all files) files {
	held := files{}
	for path, f := range all {
		was := v.files[path]
		if f.state != shrunk || was == nil || was.good == f.good {
			continue
		}
		moving := was.good.without(f.good)
		for other, of := range all {
			if len(moving) > 0 && other != path && of.state != gone {
				of.good.strike(moving)
			}
		}
		if len(moving) > 0 {
			held[path] = was
		}
	}
	if len(held) == 0 {
		return all
	}
	now := maps.Clone(all)
	maps.Copy(now, held)
	return now
}

// removes reports whether a batch removes a key.
func removes(b kvdbsync.Batch) bool {
	return slices.ContainsFunc(b.Events, func(e kvdbsync.Event) bool { return e.Value == nil && e.Err == nil })
}
