// Package links tells which names decide where a path leads.
//
//	for _, place := range links.Places(path) { ... } // watch filepath.Dir(place) for filepath.Base(place)
//
// The tests resolve real links.
package links

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// most is the kernel's limit of links in a path.
const most = 40

// Places resolves a path as the kernel does. It returns each link on the way, also within the targets of links,
// and then the end: what the path leads to, or the first name that is missing. No folder of a place is a link.
func Places(path string) (places []string) {
	path, err := filepath.Abs(path)
	if err != nil { // nobody knows the working directory
		return []string{path}
	}
	at, rest := "/", names(path)
	for links := 0; len(rest) > 0; {
		next := filepath.Join(at, rest[0])
		rest = rest[1:]
		info, err := os.Lstat(next)
		switch {
		case err == nil && info.Mode().Type() == fs.ModeSymlink && links < most:
			target, _ := os.Readlink(next) // empty if the link has just gone
			places = append(places, next)
			links++
			rest = append(names(target), rest...)
			if filepath.IsAbs(target) {
				at = "/"
			}
		case err != nil || !info.IsDir() || len(rest) == 0:
			return append(places, next)
		default:
			at = next
		}
	}
	return places
}

// names returns the names in a path.
func names(path string) []string {
	return strings.FieldsFunc(path, func(r rune) bool { return r == '/' })
}
