package filedb

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/keyplane/keyplane/internal/links"
	"github.com/keyplane/keyplane/models/structured/document"
)

// A walk is the result of one pass over the configured paths.
type walk struct {
	files map[string]identity // by path, as configured and listed; zero for a link to nothing
	dirs  map[string]watch    // to watch for changes, by real path; a mounted file is among them
	// problems are faults of places. lost are existing directories that could not be
	// listed.
	problems []error
	lost     []string
	absent   []string // configured but missing
	// folders are the devices and inodes of the configured folders.
	folders []string

	cfg    Config
	places []*place
	roots  []string          // real locations of the configured paths
	walked map[identity]bool // directories, to end cycles of links
	queue  []folder          // to enter; nearer folders first, so a bound cuts off the far ones
}

// A folder is a step on the way through a place.
type folder struct {
	path  string
	info  fs.FileInfo
	place *place
	depth int  // below the place
	away  bool // reached by a link out of the configured paths; other file systems are not entered
}

// A watch selects the events of a directory.
type watch struct {
	id     identity
	listed string          // the path by which its files are listed; "": only names count
	names  map[string]bool // names that other places depend on: links and configured places
}

// explore finds all files of a configuration, which are probably about as many as expected.
// If ctx ends, the result is incomplete and must not be used.
func explore(ctx context.Context, c Config, expected int) *walk {
	w := &walk{files: make(map[string]identity, expected), dirs: map[string]watch{}, walked: map[identity]bool{}, cfg: c}
	for _, path := range c.Paths {
		if real, err := filepath.EvalSymlinks(path); err == nil {
			w.roots = append(w.roots, real)
		}
		w.places = append(w.places, &place{path: path})
	}
	for _, p := range w.places {
		w.place(ctx, p)
	}
	return w
}

// place finds the files of one configured path.
func (w *walk) place(ctx context.Context, p *place) {
	w.await(p.path)
	info, err := os.Stat(p.path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		w.absent = append(w.absent, p.path)
	case err != nil:
		w.problems = append(w.problems, unreadable(p.path, err))
		w.lost = append(w.lost, p.path)
	case info.IsDir():
		w.folder(p.path)
		w.queue = []folder{{path: p.path, info: info, place: p}}
		for len(w.queue) > 0 && !p.full && ctx.Err() == nil {
			next := w.queue[0]
			w.queue = w.queue[1:]
			w.directory(ctx, next)
		}
	default:
		if _, known := document.FormatOf(p.path); !known {
			w.problems = append(w.problems, fmt.Errorf("%s: is not read: expected a name that ends in .yaml, .yml or .json", p.path))
			return
		}
		w.file(p, p.path, info)
	}
}

// folder records the identity of a configured folder. A link is ignored: changing its
// target deliberately selects other files.
func (w *walk) folder(path string) {
	var st unix.Statx_t
	err := unix.Statx(unix.AT_FDCWD, path, unix.AT_SYMLINK_NOFOLLOW, unix.STATX_TYPE|unix.STATX_INO|unix.STATX_BTIME, &st)
	if err != nil || st.Mode&unix.S_IFMT != unix.S_IFDIR {
		return
	}
	// A new folder may have the inode of the old one. Its birth time differs, on file
	// systems that record it; on others it is zero.
	w.folders = append(w.folders, fmt.Sprintf("%x.%x-%x-%x.%x", st.Dev_major, st.Dev_minor, st.Ino, st.Btime.Sec, st.Btime.Nsec))
}

// holds reports whether a path may exist although it was not found.
func (w *walk) holds(path string) bool {
	for _, dir := range w.lost {
		if within(path, dir) {
			return true
		}
	}
	return false
}

// absences returns the faults of missing configured places. They are watched. A place with
// files in their grace time has no fault yet.
func (w *walk) absences(all files) (out []error) {
	for _, place := range w.absent {
		below := func(path string) bool { return within(path, place) }
		if !slices.ContainsFunc(slices.Collect(maps.Keys(all)), below) {
			out = append(out, fmt.Errorf("%s: is not there: make it, or take it out of configuration-paths", place))
		}
	}
	return out
}

// within reports whether path is place or lies below it.
func within(path, place string) bool {
	rest, ok := strings.CutPrefix(path, strings.TrimSuffix(place, "/"))
	return ok && (rest == "" || rest[0] == '/')
}

// directory looks at each entry of a folder. A folder is walked once, also if several
// links lead to it: links may form a circle.
func (w *walk) directory(ctx context.Context, f folder) {
	at := identity{dev: identify(f.info).dev, ino: identify(f.info).ino}
	if w.walked[at] {
		return
	}
	w.walked[at] = true
	w.watch(f.path, "")
	entries, err := w.list(ctx, f)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		w.problems = append(w.problems, unreadable(f.path, err))
		w.lost = append(w.lost, f.path)
	}
	for _, e := range entries {
		if ctx.Err() != nil || f.place.full {
			return
		}
		if !strings.HasPrefix(e.Name(), ".") {
			w.entry(f, filepath.Join(f.path, e.Name()), e)
		}
	}
}

// list returns the entries of a folder, sorted by name, within the bounds of the place.
func (w *walk) list(ctx context.Context, f folder) (entries []fs.DirEntry, err error) {
	// A pipe that has taken the place of the folder would block the walk for ever.
	dir, err := os.OpenFile(f.path, os.O_RDONLY|unix.O_DIRECTORY|unix.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	defer dir.Close()
	for ctx.Err() == nil {
		some, err := dir.ReadDir(min(256, 1+w.cfg.MaxEntries-f.place.entries))
		entries = append(entries, some...)
		f.place.entries += len(some)
		if f.place.entries > w.cfg.MaxEntries {
			f.place.full = true
			w.exceed(f.place, "max-entries", strconv.Itoa(w.cfg.MaxEntries), "has too many files and folders of any sort, the last seen in "+f.path)
			break
		}
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return entries, err
		}
	}
	slices.SortFunc(entries, func(a, b fs.DirEntry) int { return strings.Compare(a.Name(), b.Name()) })
	return entries, nil
}

// entry takes a file with a known extension, and descends into a folder. It follows a link
// out of the configured paths only if that is allowed.
func (w *walk) entry(f folder, path string, e fs.DirEntry) {
	_, known := document.FormatOf(path)
	link := e.Type()&fs.ModeSymlink != 0
	if !known && !link && !e.IsDir() {
		return
	}
	info, err := os.Stat(path)
	isDir := err == nil && info.IsDir()
	if !isDir && !known {
		return
	}
	away := link && err == nil && !w.inside(path)
	switch {
	case away && !w.cfg.FollowLinks:
		w.problems = append(w.problems, strayLink(path))
		w.lost = append(w.lost, path)
		w.watch(f.path, e.Name()) // to notice its removal
		return
	case isDir:
		w.enter(folder{path: path, info: info, place: f.place, depth: f.depth + 1, away: f.away || away}, f)
	default:
		w.candidate(f.place, path, info, err)
	}
	if link {
		w.await(path)
	}
}

// candidate adds a file with a known extension, or the reason why it is unknown.
func (w *walk) candidate(p *place, path string, info fs.FileInfo, err error) {
	switch {
	case err == nil:
		w.file(p, path, info)
	case !errors.Is(err, fs.ErrNotExist):
		w.problems = append(w.problems, unreadable(path, err))
		w.lost = append(w.lost, path)
	case w.takes(p, path, 0):
		w.files[path] = identity{}
	}
}

// enter queues a folder, unless a bound or a file system ends there.
func (w *walk) enter(next, from folder) {
	switch {
	case next.depth > w.cfg.MaxDepth:
		w.exceed(next.place, "max-depth", strconv.Itoa(w.cfg.MaxDepth), "has folders that are nested too deep, such as "+next.path)
	case from.away && identify(next.info).dev != identify(from.info).dev:
		w.problems = append(w.problems, fmt.Errorf("%s: lies on another file system than the folder that a link led to: not followed; add it to configuration-paths if it is meant", next.path))
		w.lost = append(w.lost, next.path)
	default:
		w.queue = append(w.queue, next)
	}
}

// inside reports whether a link leads to a place within the configured paths.
func (w *walk) inside(path string) bool {
	real, err := filepath.EvalSymlinks(path)
	return err == nil && slices.ContainsFunc(w.roots, func(root string) bool { return within(real, root) })
}

// strayLink returns the error for a link out of the configured paths, with two remedies.
func strayLink(path string) error {
	where, err := filepath.EvalSymlinks(path)
	if err != nil {
		where = "elsewhere"
	}
	return fmt.Errorf("%s: is a link to %s, which is outside of configuration-paths: not followed; add that to configuration-paths, or set follow-links in filedb.conf", path, where)
}

// file notes a file, unless a bound is exceeded.
func (w *walk) file(p *place, path string, info fs.FileInfo) {
	if id := identify(info); w.takes(p, path, Size(id.size)) {
		w.files[path] = id
		w.mounted(path)
	}
}

// mounted watches a file by itself if it is mounted in its place, as containers have single files of the host: its
// writers have it in another folder, so the kernel tells nothing of them here. A file that is replaced there stays
// here as it was.
func (w *walk) mounted(path string) {
	var st unix.Statx_t
	err := unix.Statx(unix.AT_FDCWD, path, 0, unix.STATX_INO|unix.STATX_NLINK, &st)
	if err != nil || st.Attributes&unix.STATX_ATTR_MOUNT_ROOT == 0 {
		return
	}
	if st.Nlink == 0 {
		w.problems = append(w.problems, fmt.Errorf("%s: is mounted as a single file, which was replaced or removed where it comes from; its new content never arrives here: "+
			"mount the folder that has it instead, or restart the container", path))
	}
	if real, err := filepath.EvalSymlinks(path); err == nil {
		w.dirs[real] = watch{id: identity{dev: unix.Mkdev(st.Dev_major, st.Dev_minor), ino: st.Ino}}
	}
}

// await watches for anything that changes what path leads to: there, at each link on the way, or at the nearest
// existing directory above.
func (w *walk) await(path string) {
	for _, place := range links.Places(path) {
		w.watch(filepath.Dir(place), filepath.Base(place))
	}
}

// watch adds a directory, or one name in it, if it exists.
func (w *walk) watch(dir, name string) {
	real, err := filepath.EvalSymlinks(dir)
	if err != nil {
		return
	}
	info, err := os.Stat(real)
	if err != nil || !info.IsDir() {
		return
	}
	d := w.dirs[real]
	d.id = identity{dev: identify(info).dev, ino: identify(info).ino}
	switch {
	case name == "":
		d.listed = dir
	case d.names == nil:
		d.names = map[string]bool{name: true}
	default:
		d.names[name] = true
	}
	w.dirs[real] = d
}
