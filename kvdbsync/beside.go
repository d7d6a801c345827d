package kvdbsync

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/keyplane/keyplane/internal/printable"
)

// A Browser is a store that can name the keys beside the watched ones. A Source warns about
// them, because a misspelt prefix would otherwise have no visible effect.
type Browser interface {
	// Beside returns the folders and keys below prefix, except those in known, sorted. A
	// folder is a text that ends with a slash; known has folders and keys, too. A folder is
	// as short as possible, but contains nothing in known. The names are complete keys
	// without the prefix, at most MostBeside of them. The cost does not grow with the number
	// of keys in a folder; a store that has to scan its keys may stop before the end.
	Beside(ctx context.Context, prefix string, known []string) ([]string, error)
}

// MostBeside is the largest number of names that Beside returns.
const MostBeside = 16

// besideTimeout bounds one call of Beside.
const besideTimeout = 10 * time.Second

// FolderOf returns the name under which Beside returns a key without its prefix, and false
// if it is known.
func FolderOf(key string, known []string) (name string, unknown bool) {
	if key == "" { // the key of the whole folder, which some tools make
		return "", false
	}
	for _, k := range known {
		if key == k || strings.HasSuffix(k, "/") && strings.HasPrefix(key, k) {
			return "", false
		}
	}
	contains := func(k string) bool { return strings.HasPrefix(k, name) }
	for {
		element, _, inside := strings.Cut(key[len(name):], "/")
		if !inside {
			return key, true
		}
		name += element + "/"
		if !slices.ContainsFunc(known, contains) {
			return name, true
		}
	}
}

// Leap implements Beside for a store with ordered keys. least returns the least key k with
// from <= k < to, or "" if there is none. Leap calls it once for each known and each returned
// name, and never for a range with known keys.
func Leap(prefix string, known []string, least func(from, to string) (string, error)) (names []string, err error) {
	from, end := prefix+"\x00", after(prefix)
	known = slices.Sorted(slices.Values(known))
	for _, k := range append(known, "") {
		to := prefix + k
		if k == "" {
			to = end
		}
		for from < to && len(names) < MostBeside {
			key, err := least(from, to)
			if err != nil {
				return nil, err
			}
			if key == "" {
				break
			}
			name, _ := FolderOf(key[len(prefix):], known)
			names, from = append(names, name), after(prefix+name)
		}
		if k != "" {
			from = max(from, after(prefix+k))
		}
	}
	return names, nil
}

// after returns the least text behind a key, or behind all keys of a folder.
func after(name string) string {
	if folder, ok := strings.CutSuffix(name, "/"); ok {
		return folder + string(rune('/'+1))
	}
	return name + "\x00"
}

// lookBeside warns once about each folder beside the watched keys.
func (s *Source) lookBeside(ctx context.Context) {
	if s.o.Browser == nil || s.o.Prefix == "" {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, besideTimeout)
	defer cancel()
	names, err := s.o.Browser.Beside(ctx, s.o.Root, append([]string{s.o.Prefix}, s.o.Known...))
	if err != nil {
		// The store may forbid it, and nothing depends on the answer.
		s.o.Log.Debug("cannot look for keys beside the watched ones", "source", s.o.Name, "err", short(err))
		return
	}
	for _, name := range names {
		name = printable.Cut(name, maxErrorText)
		if s.warned[name] {
			continue
		}
		s.warned[name] = true
		s.o.Log.Warn("ignoring keys outside of the folder that is read", "source", s.o.Name, "ignored", s.o.Root+name, "read", s.prefix)
	}
}
