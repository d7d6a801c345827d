package faults

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/keyplane/keyplane/internal/faults/stores"
)

// fileFaults are the ways in which people, editors and machines write files, and faults of
// the folder.
func fileFaults() []Fault {
	saved := func(how string, save func(path string, content []byte) error) Fault {
		return Fault{Name: "files " + how, Needs: stores.FilesOfPeople, Do: func(r *Run) {
			r.Store.SaveAs(save)
			r.churn(30)
		}}
	}
	return []Fault{
		saved("written in place", func(path string, content []byte) error { return os.WriteFile(path, content, 0o600) }),
		saved("truncated and written slowly", saveSlowly),
		saved("saved by a rename", stores.SaveByRename),
		saved("swapped for a new one, with a backup", saveBySwap),
		saved("removed and made again", saveAnew),
		saved("switched as a ConfigMap", saveAsConfigMap),
		{Name: "folder removed and made again", Needs: stores.FilesOfPeople, Do: folderRemoved},
		{Name: "file notifications lost (overflow)", Needs: stores.FilesOfPeople, Do: overflown},
		{Name: "files half written, and held open", Needs: stores.FilesOfPeople | stores.BlockYAML, Do: stalledWriter},
		{Name: "files half written by a writer that died", Needs: stores.FilesOfPeople | stores.BlockYAML, Do: deadWriter},
		{Name: "a file that is no JSON, and back", Needs: stores.FilesOfPeople, Do: brokenFile},
	}
}

// saveSlowly waits between the truncation and the last byte.
func saveSlowly(path string, content []byte) error {
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	const pieces = 5
	for i := range pieces {
		<-time.After(5 * time.Millisecond)
		if _, err := f.Write(content[len(content)*i/pieces : len(content)*(i+1)/pieces]); err != nil {
			f.Close()
			return err
		}
	}
	return f.Close()
}

// saveBySwap saves like vi: there is a swap file for a time, the old file becomes the
// backup, and a new file takes its path.
func saveBySwap(path string, content []byte) error {
	swap := filepath.Join(filepath.Dir(path), "."+filepath.Base(path)+".swp")
	if err := os.WriteFile(swap, content[:len(content)/2], 0o600); err != nil {
		return err
	}
	if err := os.Rename(path, path+"~"); err != nil && !os.IsNotExist(err) {
		return err
	}
	if err := os.WriteFile(path, content, 0o600); err != nil {
		return err
	}
	return os.Remove(swap)
}

// saveAnew leaves the path without a file for a moment, as some editors do.
func saveAnew(path string, content []byte) error {
	if err := os.Remove(path); err != nil && !os.IsNotExist(err) {
		return err
	}
	return os.WriteFile(path, content, 0o600)
}

// saveAsConfigMap saves like a kubelet: all files are in a folder of their own, the link
// ..data leads to it, and is switched to a new folder with all files.
func saveAsConfigMap(path string, content []byte) error {
	dir := filepath.Dir(path)
	next, err := os.MkdirTemp(dir, "..")
	if err != nil {
		return err
	}
	paths, err := filepath.Glob(filepath.Join(dir, "*.json"))
	if err != nil {
		return err
	}
	for _, one := range append(paths, path) {
		text := content
		if one != path {
			text, err = os.ReadFile(one)
			if err != nil {
				return err
			}
		}
		if err := os.WriteFile(filepath.Join(next, filepath.Base(one)), text, 0o600); err != nil {
			return err
		}
	}
	return switchTo(dir, next, append(paths, path))
}

// switchTo makes the folder next the target of ..data, by a rename, and makes a link into
// ..data for each path that is not one yet. The folder before is removed, like a kubelet
// does it.
func switchTo(dir, next string, paths []string) error {
	data := filepath.Join(dir, "..data")
	last, _ := os.Readlink(data)
	if err := os.Symlink(filepath.Base(next), data+"_tmp"); err != nil {
		return err
	}
	if err := os.Rename(data+"_tmp", data); err != nil {
		return err
	}
	for _, path := range paths {
		if info, err := os.Lstat(path); err == nil && info.Mode()&os.ModeSymlink != 0 {
			continue
		}
		if err := os.Symlink(filepath.Join("..data", filepath.Base(path)), path+".link"); err != nil {
			return err
		}
		if err := os.Rename(path+".link", path); err != nil {
			return err
		}
	}
	if last == "" {
		return nil
	}
	return os.RemoveAll(filepath.Join(dir, last))
}

// folderRemoved removes the folder that the agent watches, with its files. A new folder of
// that name is another inode, which needs a new watch.
func folderRemoved(r *Run) {
	begun := time.Now()
	if err := os.RemoveAll(r.Store.Dir); err != nil {
		r.Fatal(err)
	}
	r.Store.Wipe()
	r.wiped(begun, map[string]string{})
	r.linger()
	if err := os.Mkdir(r.Store.Dir, 0o700); err != nil {
		r.Fatal(err)
	}
	r.heal()
	r.Put(r.names(r.Scale.Keys)...)
}

// overflown makes more changes in the folder than the kernel queues. The agent does not
// read them meanwhile: it still works on the batch before.
func overflown(r *Run) {
	var queue int
	if text, err := os.ReadFile("/proc/sys/fs/inotify/max_queued_events"); err != nil {
		r.Fatal(err)
	} else if _, err := fmt.Sscan(string(text), &queue); err != nil {
		r.Fatal(err)
	}
	release := r.Agent.holdWatch()
	r.churn(5)
	// Files of a kind that the agent ignores fill the queue as well.
	noise := [2]string{filepath.Join(r.Store.Dir, "noise0.txt"), filepath.Join(r.Store.Dir, "noise1.txt")}
	for _, path := range noise {
		if err := os.WriteFile(path, nil, 0o600); err != nil {
			r.Fatal(err)
		}
	}
	// Two files in turn: the kernel merges an event with an equal one before it.
	for i := range queue + 10_000 {
		if err := os.Chmod(noise[i%2], 0o600); err != nil {
			r.Fatal(err)
		}
	}
	r.churn(20)
	r.heal()
	release()
}

// brokenFile breaks a file. Its values stay in force, and changes of other files apply.
func brokenFile(r *Run) {
	path := filepath.Join(r.Store.Dir, "0.json")
	good, err := os.ReadFile(path)
	if err != nil {
		r.Fatal(err)
	}
	// Half a file, no text at all, and two beginnings of JSON.
	for _, text := range []string{string(good[:len(good)/2]), "\x00\xff\xfe", "{", "[1"} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			r.Fatal(err)
		}
		r.Put(r.name(1), r.name(2))
		r.await("the other files")
	}
	r.heal()
	if err := os.WriteFile(path, good, 0o600); err != nil {
		r.Fatal(err)
	}
	r.churn(10)
}

// stalledWriter truncates a file, writes half of it, and stops with the file open. It
// stops for longer than an empty file counts as unfinished. The half is valid YAML, and
// the agent must not apply it.
func stalledWriter(r *Run) {
	r.churn(10)
	r.await("whole files")
	r.Store.SaveAs(func(path string, content []byte) error {
		f, err := os.Create(path)
		if err != nil {
			return err
		}
		// At the beginning of an item, so the first half is a whole document.
		half := bytes.LastIndex(content[:len(content)/2], []byte("- key"))
		if _, err := f.Write(content[:half]); err != nil {
			return errors.Join(err, f.Close())
		}
		r.linger()
		r.unmoved("half a file that is held open")
		_, err = f.Write(content[half:])
		return errors.Join(err, f.Close())
	})
	r.Put(r.name(0))
	r.heal()
	r.Store.SaveAs(stores.SaveByRename)
	r.churn(10)
}

// deadWriter closes the file in the middle of a line, and behind a key.
func deadWriter(r *Run) {
	r.churn(10)
	for _, last := range []string{"- key: conf", "value:"} {
		r.await("whole files")
		r.Store.SaveAs(func(path string, content []byte) error {
			begin := len(content) / 2
			half := begin + bytes.Index(content[begin:], []byte(last)) + len(last)
			if err := os.WriteFile(path, content[:half], 0o600); err != nil {
				return err
			}
			r.linger()
			r.unmoved("half a file")
			return stores.SaveByRename(path, content)
		})
		r.Put(r.name(0))
	}
	r.heal()
	r.Store.SaveAs(stores.SaveByRename)
	r.churn(10)
}

// unmoved checks that the store's values are in force, and that the source reports a
// problem.
func (r *Run) unmoved(what string) {
	r.Helper()
	r.until("a problem: "+what, func() bool { return r.Agent.Source.Health().Problems > 0 })
	r.await(what)
}
