package statestore

import (
	"encoding/binary"
	"errors"
	"fmt"
	"iter"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/keyplane/keyplane/internal/plainfile"
)

// reserve is the disk space in bytes that is reserved ahead for a journal.
const reserve = 1 << 20

var fdatasync = unix.Fdatasync // tests replace it

// A journal is the file to which changes are appended.
type journal struct {
	held
	generation uint64
	size       int64 // the end of the last complete group of records
	torn       bool  // there may be bytes behind size
	reserved   int64 // the end of the reserved disk space
}

// journalPath returns the path of a generation. A new snapshot begins a new one.
func journalPath(dir string, generation uint64) string {
	return filepath.Join(dir, journalPrefix+strconv.FormatUint(generation, 10))
}

// newJournal creates the file. It appears with its header, so a file without one is
// damaged.
func newJournal(dir string, generation uint64) (*journal, error) {
	path := journalPath(dir, generation)
	beside := filepath.Join(dir, "."+filepath.Base(path))
	f, err := plainfile.OpenFile(beside, os.O_CREATE|os.O_TRUNC|os.O_RDWR|unix.O_NOFOLLOW, 0o600)
	if err != nil {
		return nil, err
	}
	_, err = f.WriteAt(header{generation: generation, length: headerSize}.bytes(), 0)
	if err == nil {
		err = os.Rename(beside, path)
	}
	if err != nil {
		return nil, errors.Join(err, f.Close(), os.Remove(beside))
	}
	return &journal{held: newHeld(path, f), generation: generation, size: headerSize}, nil
}

// openJournal continues a file, and removes a record that a kill has cut short.
func openJournal(path string, r reading) (*journal, error) {
	f, err := plainfile.OpenFile(path, os.O_RDWR|unix.O_NOFOLLOW, 0o600)
	if err != nil {
		return nil, err
	}
	return &journal{held: newHeld(path, f), generation: r.header.generation, size: r.good, torn: r.good < r.size}, nil
}

// append writes changes, all or none, in records of a bounded size. It uses buf and
// returns it for the next call.
func (j *journal) append(buf []byte, changes iter.Seq2[string, []byte]) (_ []byte, err error) {
	if err := j.rewind(); err != nil {
		return buf, err
	}
	at := j.size
	write := func(flags uint32) {
		closeRecord(buf, 0, flags)
		j.torn = true
		j.ahead(at + int64(len(buf)))
		_, err = j.WriteAt(buf, at)
		at += int64(len(buf))
		buf = openRecord(buf[:0])
	}
	buf = openRecord(buf[:0])
	for key, value := range changes {
		if len(buf) > recordSize {
			write(more)
		}
		if err == nil && len(key)+len(value) > mostRecord {
			err = fmt.Errorf("key and value have %d bytes; the maximum is %d (key %.100s)", len(key)+len(value), mostRecord, key)
		}
		if err != nil {
			return buf, errors.Join(err, j.rewind())
		}
		buf = appendChange(buf, key, value)
	}
	if len(buf) == recordHead && at == j.size {
		return buf, nil
	}
	if write(0); err != nil {
		return buf, errors.Join(err, j.rewind())
	}
	j.size, j.torn = at, false
	return buf, nil
}

// rewind removes the bytes behind the last complete group.
func (j *journal) rewind() error {
	if !j.torn {
		return nil
	}
	if err := j.Truncate(j.size); err != nil {
		return err
	}
	j.torn, j.reserved = false, 0
	return nil
}

// ahead reserves disk space up to at least end. It ignores errors, because the write
// itself will report them.
func (j *journal) ahead(end int64) {
	if end <= j.reserved {
		return
	}
	_ = unix.Fallocate(int(j.Fd()), unix.FALLOC_FL_KEEP_SIZE, j.size, end-j.size+reserve)
	j.reserved = end + reserve
}

// sync waits until the disk has everything that was appended, and records that length.
func (j *journal) sync() error {
	size := j.size
	if err := fdatasync(int(j.Fd())); err != nil {
		return &os.PathError{Op: "fdatasync", Path: j.Name(), Err: err}
	}
	return j.note(size)
}

// note writes the length of the synced file into its header.
func (j *journal) note(size int64) error {
	_, err := j.WriteAt(binary.LittleEndian.AppendUint64(nil, uint64(size)), lengthAt)
	return err
}

// generationOf returns the generation in the name of a journal.
func generationOf(name string) (generation uint64, ok bool) {
	number, ok := strings.CutPrefix(name, journalPrefix)
	if !ok {
		return 0, false
	}
	generation, err := strconv.ParseUint(number, 10, 64)
	return generation, err == nil
}
