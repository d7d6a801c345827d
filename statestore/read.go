package statestore

import (
	"bufio"
	"errors"
	"fmt"
	"io"

	"github.com/keyplane/keyplane/internal/plainfile"
)

// A reading is the result of reading a file.
type reading struct {
	header header
	good   int64 // bytes from the beginning that are complete groups of records
	size   int64 // of the file
	damage error // of the bytes behind good; nil: there are none, or a kill has cut them short
}

// readFile calls each with the content of all records in complete groups, in order. If
// keep is false, the bytes are valid only until each returns. The error is one of the file
// system. Damage is part of the reading.
func readFile(path string, keep bool, each func(content []byte)) (reading, error) {
	f, err := plainfile.Open(path)
	if err != nil {
		return reading{}, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return reading{}, err
	}
	in := bufio.NewReaderSize(f, 1<<16)
	out := reading{size: info.Size()}
	if out.header, err = readHeader(in); err != nil {
		out.damage = err
		return out, nil
	}
	out.good = headerSize
	err = out.records(in, keep, each)
	switch {
	case errors.Is(err, errDamaged), errors.Is(err, errCut) && out.good < out.header.length:
		out.damage = fmt.Errorf("%w at byte %d of %d", err, out.good, out.size)
	case errors.Is(err, io.EOF) && out.good < out.header.length:
		out.damage = fmt.Errorf("the file has %d bytes; it had at least %d", out.size, out.header.length)
	case errors.Is(err, errCut), errors.Is(err, io.EOF):
	default:
		return out, err
	}
	return out, nil
}

// records reads until the first error, which may be io.EOF.
func (r *reading) records(in io.Reader, keep bool, each func(content []byte)) error {
	var group [][]byte
	var buf []byte
	at := r.good
	for {
		one, err := readRecord(in, r.size-at, buf)
		if errors.Is(err, io.EOF) && len(group) > 0 {
			return errCut
		}
		if err != nil {
			return err
		}
		at += recordHead + int64(len(one.content))
		if one.more || len(group) > 0 {
			group, buf = append(group, one.content), nil
		} else {
			each(one.content)
			if buf = one.content; keep {
				buf = nil
			}
		}
		if one.more {
			continue
		}
		for _, content := range group {
			each(content)
		}
		group, r.good = nil, at
	}
}
