package main

import (
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// The files of a first run: configuration of the agent, and the network. files/tap is
// only used if the machine can make TAPs.
//
//go:embed files
var files embed.FS

// writeFiles writes the files below dir. An existing file stays as it is: it belongs to
// the user.
func writeFiles(dir string) error {
	return fs.WalkDir(files, "files", func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name, isTAP := strings.CutPrefix(path, "files/tap")
		if isTAP && !mayMakeTAPs() {
			return nil
		}
		if isTAP {
			name = "/network" + name
		}
		target := filepath.Join(dir, strings.TrimPrefix(name, "files"))
		if entry.IsDir() {
			return os.MkdirAll(target, 0o755)
		}
		content, err := files.ReadFile(path)
		if err != nil {
			return err
		}
		return writeNew(target, content)
	})
}

// mayMakeTAPs reports that this user may open the kernel's device for TAPs.
func mayMakeTAPs() bool {
	device, err := os.OpenFile("/dev/net/tun", os.O_RDWR, 0)
	if err == nil {
		device.Close()
	}
	return err == nil
}

// writeNew writes a file unless it exists: the reader may have edited it.
func writeNew(path string, content []byte) error {
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if errors.Is(err, fs.ErrExist) {
		return nil
	}
	if err != nil {
		return err
	}
	_, err = file.Write(content)
	if err := errors.Join(err, file.Close()); err != nil {
		return fmt.Errorf("writing %s: %w", path, err)
	}
	return nil
}
