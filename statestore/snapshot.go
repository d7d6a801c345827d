package statestore

import (
	"bufio"
	"errors"
	"hash/maphash"
	"io"
	"os"
	"path/filepath"

	"github.com/google/renameio/v2"
)

// WriteFile replaces a small file atomically. At any moment, also after a loss of power,
// it has either the old content or the new. Its mode is 0600.
func WriteFile(path string, content []byte) error {
	return replace(path, func(out *os.File) error {
		_, err := out.Write(content)
		return err
	})
}

// replace replaces a file atomically by the output of write.
func replace(path string, write func(out *os.File) error) error {
	dir := filepath.Dir(path)
	out, err := renameio.NewPendingFile(path, renameio.WithTempDir(dir), renameio.WithStaticPermissions(0o600))
	if err != nil {
		return err
	}
	if err := write(out.File); err != nil {
		return errors.Join(err, out.Cleanup())
	}
	if err := out.CloseAtomicallyReplace(); err != nil {
		return errors.Join(err, out.Cleanup())
	}
	return syncDir(dir)
}

// syncDir makes the names in dir survive a loss of power.
func syncDir(dir string) error {
	f, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}

// writeSnapshot writes a snapshot of a generation from parts, and returns its size. It
// reads the parts twice instead of keeping their values in memory.
func writeSnapshot(dir string, generation uint64, parts []*part) (size int64, err error) {
	last, err := lastChanges(parts)
	if err != nil {
		return 0, err
	}
	err = replace(filepath.Join(dir, snapshotName), func(out *os.File) error {
		size, err = copyLast(out, generation, parts, last)
		return err
	})
	return size, err
}

// A lookup returns the number of the last change of each key. Keys are identified by a
// hash of 128 bits.
type lookup struct {
	seeds [2]maphash.Seed
	last  map[[2]uint64]uint64
}

// hash returns 128 bits, so that two keys never share a hash in practice. Keys themselves
// would take several times the memory.
func (l *lookup) hash(key []byte) [2]uint64 {
	return [2]uint64{maphash.Bytes(l.seeds[0], key), maphash.Bytes(l.seeds[1], key)}
}

// lastChanges returns the number of the last change of each key that exists at the end. A
// snapshot copies only these.
func lastChanges(parts []*part) (*lookup, error) {
	l := &lookup{seeds: [2]maphash.Seed{maphash.MakeSeed(), maphash.MakeSeed()}, last: map[[2]uint64]uint64{}}
	err := eachChange(parts, func(n uint64, key, value []byte) {
		if value == nil {
			delete(l.last, l.hash(key))
		} else {
			l.last[l.hash(key)] = n
		}
	})
	return l, err
}

// eachChange numbers and visits the changes of all parts. Damage that the parts do not name is an error: what is behind it would
// be lost without a trace when its file is replaced.
func eachChange(parts []*part, do func(n uint64, key, value []byte)) error {
	n := uint64(0)
	for _, p := range parts {
		err := streamFile(p.path, p.reading.damage != nil, func(content []byte) {
			for key, value := range changes(content) {
				n++
				do(n, key, value)
			}
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// copyLast writes the snapshot with the last change of each key.
func copyLast(out *os.File, generation uint64, parts []*part, l *lookup) (size int64, err error) {
	in := bufio.NewWriterSize(out, 1<<16)
	size = headerSize
	if _, err := in.Write(header{generation: generation}.bytes()); err != nil {
		return 0, err
	}
	var failed error
	buf := openRecord(nil)
	flush := func() {
		if len(buf) == recordHead || failed != nil {
			return
		}
		closeRecord(buf, 0, 0)
		_, failed = in.Write(buf)
		size += int64(len(buf))
		buf = openRecord(buf[:0])
	}
	err = eachChange(parts, func(n uint64, key, value []byte) {
		if value != nil && l.last[l.hash(key)] == n {
			if buf = appendChange(buf, key, value); len(buf) > recordSize {
				flush()
			}
		}
	})
	flush()
	if err := errors.Join(err, failed, in.Flush()); err != nil {
		return 0, err
	}
	// A file that is shorter than this length is damaged.
	if _, err := out.Seek(0, io.SeekStart); err != nil {
		return 0, err
	}
	_, err = out.Write(header{generation: generation, length: size}.bytes())
	return size, err
}
