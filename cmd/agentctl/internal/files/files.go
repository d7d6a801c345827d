// Package files reads the files of command lines, within bounds.
//
//	text, err := files.Read("network.yaml")        // the user names it: it may be a pipe, such as <(command)
//	text, err := files.ReadIn("network", "a.yaml") // it was found in a folder
//	text, err := files.ReadPlain(path)             // a file names it
//
// Others may have written the folder that somebody names, also one of root's. To open a pipe there would block for ever,
// and a link may lead to a file that only root may read, of which an error message would then show lines.
package files

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/keyplane/keyplane/internal/plainfile"
)

// Most is the size, in bytes, of the largest file. A device may have no end.
const Most = 256 << 20

// ErrLarge says that a file is larger than Most.
var ErrLarge = errors.New("is too large: expected at most 256 MiB")

// ErrOutside says that a file of a folder is a link out of it.
var ErrOutside = errors.New("is a link that leads out of the folder: expected a file in it; name the other file itself")

// Read returns the content of a file.
func Read(path string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return All(path, f)
}

// All returns what r has. Errors begin with its name.
func All(name string, r io.Reader) ([]byte, error) {
	text, err := io.ReadAll(io.LimitReader(r, Most+1))
	switch {
	case err != nil:
		return nil, err
	case len(text) > Most:
		return nil, fmt.Errorf("%s %w", name, ErrLarge)
	}
	return text, nil
}

// ReadIn returns the content of a regular file in a folder. Links are followed within the folder.
func ReadIn(folder, name string) ([]byte, error) {
	path := filepath.Join(folder, name)
	at, err := plainfile.Find(path)
	if err != nil {
		return nil, err
	}
	defer at.Close()
	info, err := at.Stat()
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("%s: %w", path, plainfile.ErrNoFile)
	}
	inside, err := isInside(at, folder)
	if err != nil {
		return nil, err
	}
	if !inside {
		return nil, fmt.Errorf("%s %w", path, ErrOutside)
	}
	f, err := plainfile.Reopen(at, os.O_RDONLY)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return All(path, f)
}

// ReadPlain returns the content of a regular file.
func ReadPlain(path string) ([]byte, error) {
	f, err := plainfile.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return All(path, f)
}

// isInside reports whether what was found lies in the folder.
func isInside(at *os.File, folder string) (bool, error) {
	root, err := filepath.EvalSymlinks(folder)
	if err == nil {
		root, err = filepath.Abs(root)
	}
	if err != nil {
		return false, err
	}
	raw, err := at.SyscallConn()
	if err != nil {
		return false, err
	}
	var real string
	failed := raw.Control(func(fd uintptr) { real, err = os.Readlink(fmt.Sprintf("/proc/self/fd/%d", fd)) })
	if err := errors.Join(failed, err); err != nil {
		return false, err
	}
	rel, err := filepath.Rel(root, real)
	return err == nil && filepath.IsLocal(rel), nil
}
