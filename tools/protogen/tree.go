package main

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
)

// compare returns the differences between the generated files and those below root.
func compare(root string, want map[string]string) (map[string]*string, error) {
	changes := map[string]*string{}
	stand, err := find(root, ".pb.go")
	if err != nil {
		return nil, err
	}
	for _, path := range stand {
		if _, ok := want[path]; !ok {
			changes[path] = nil
		}
	}
	for path, content := range want {
		have, err := os.ReadFile(filepath.Join(root, path))
		if err != nil && !os.IsNotExist(err) {
			return nil, err
		}
		if err != nil || string(have) != content {
			changes[path] = &content
		}
	}
	return changes, nil
}

// apply makes the changes below root.
func apply(root string, changes map[string]*string) error {
	for path, content := range changes {
		full := filepath.Join(root, path)
		if content == nil {
			if err := os.Remove(full); err != nil {
				return err
			}
			continue
		}
		if err := os.WriteFile(full, []byte(*content), 0o644); err != nil {
			return err
		}
	}
	return nil
}

// names returns the changed files, sorted.
func names(changes map[string]*string) []string {
	return slices.Sorted(maps.Keys(changes))
}
