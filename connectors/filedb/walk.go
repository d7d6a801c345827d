package filedb

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/keyplane/keyplane/models/structured/document"
)

// A walk is what one pass over the configured paths finds.
type walk struct {
	files map[string]identity // by path, as configured and listed; zero where a link leads nowhere
	dirs  map[string]watch    // what must be watched to learn of changes, by real path
	// problems are faults of places, and lost are the directories that there are
	// but that could not be listed.
	problems []error
	lost     []string
	absent   []string // configured, and not there
	// folders are the devices and inodes of the configured folders.
	folders []string

	walked map[identity]bool // directories, so that links cannot lead in circles
}

// A watch is what of a directory is worth waking for.
type watch struct {
	id     identity
	listed string          // the path by which its files are listed; "": only names count
	names  map[string]bool // what other places hang on: links, and places that are configured
}

// explore finds all files of a configuration.
func explore(c Config) *walk {
	w := &walk{files: map[string]identity{}, dirs: map[string]watch{}, walked: map[identity]bool{}}
	for _, path := range c.Paths {
		w.await(path, 0)
		info, err := os.Stat(path)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			w.absent = append(w.absent, path)
		case err != nil:
			w.problems = append(w.problems, unreadable(path, err))
			w.lost = append(w.lost, path)
		case info.IsDir():
			w.folder(path)
			w.directory(path, info)
		default:
			w.file(path, info)
			if _, ok := document.FormatOf(path); !ok {
				w.problems = append(w.problems, fmt.Errorf("%s: want a name that ends in .yaml, .yml or .json", path))
			}
		}
	}
	return w
}

// folder notes which folder a configured path is. A link is left out: whoever makes it
// lead elsewhere says that other files count.
func (w *walk) folder(path string) {
	if info, err := os.Lstat(path); err == nil && info.IsDir() {
		id := identify(info)
		w.folders = append(w.folders, fmt.Sprintf("%x-%x", id.dev, id.ino))
	}
}

// holds tells whether a path that was not found may be there all the same.
func (w *walk) holds(path string) bool {
	for _, dir := range w.lost {
		if within(path, dir) {
			return true
		}
	}
	return false
}

// absences are the faults of configured places that are not there. They are
// watched for. One of whose files some still count, for a grace, is no fault yet.
func (w *walk) absences(files map[string]file) (out []error) {
	for _, place := range w.absent {
		below := func(path string) bool { return within(path, place) }
		if !slices.ContainsFunc(slices.Collect(maps.Keys(files)), below) {
			out = append(out, fmt.Errorf("%s: is not there: make it, or take it out of configuration-paths", place))
		}
	}
	return out
}

// within tells whether path is place, or lies below it.
func within(path, place string) bool { return path == place || strings.HasPrefix(path, place+"/") }

func (w *walk) directory(dir string, info fs.FileInfo) {
	place := identity{dev: identify(info).dev, ino: identify(info).ino}
	if w.walked[place] {
		return
	}
	w.walked[place] = true
	w.watch(dir, "")
	entries, err := os.ReadDir(dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		w.problems = append(w.problems, unreadable(dir, err))
		w.lost = append(w.lost, dir)
	}
	for _, e := range entries {
		if !strings.HasPrefix(e.Name(), ".") {
			w.entry(filepath.Join(dir, e.Name()), e)
		}
	}
}

func (w *walk) entry(path string, e fs.DirEntry) {
	_, known := document.FormatOf(path)
	link := e.Type()&fs.ModeSymlink != 0
	if !known && !link && !e.IsDir() {
		return
	}
	info, err := os.Stat(path)
	switch {
	case err == nil && info.IsDir():
		w.directory(path, info)
	case !known:
		return
	case errors.Is(err, fs.ErrNotExist):
		w.files[path] = identity{}
	case err != nil:
		w.problems = append(w.problems, unreadable(path, err))
		w.lost = append(w.lost, path)
	default:
		w.file(path, info)
	}
	if link {
		w.await(path, 0)
	}
}

func (w *walk) file(path string, info fs.FileInfo) { w.files[path] = identify(info) }

// await sees to it that it is noticed when something appears or changes at path:
// there, at the nearest place above that there is, and where a link leads to.
func (w *walk) await(path string, links int) {
	const mostLinks = 40 // as many as the kernel follows
	for at := path; ; at = filepath.Dir(at) {
		if w.watch(filepath.Dir(at), filepath.Base(at)) || at == "/" {
			break
		}
	}
	target, err := os.Readlink(path)
	if err != nil || links == mostLinks {
		return
	}
	if !filepath.IsAbs(target) {
		target = filepath.Join(filepath.Dir(path), target)
	}
	w.await(target, links+1)
}

// watch adds a directory, or one name in it, and tells whether it is there.
func (w *walk) watch(dir, name string) bool {
	real, err := filepath.EvalSymlinks(dir)
	if err != nil {
		return false
	}
	info, err := os.Stat(real)
	if err != nil || !info.IsDir() {
		return false
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
	return true
}
