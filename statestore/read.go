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

// readFile calls each with the content of all records in complete groups, in order. The
// caller may keep the bytes. If each is nil, it only finds out what is complete, and keeps
// no record. The error is one of the file system. Damage is part of the reading.
func readFile(path string, each func(content []byte)) (reading, error) {
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
	err = out.records(in, each)
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
func (r *reading) records(in io.Reader, each func(content []byte)) error {
	var group [][]byte
	var buf []byte
	open := false // a group has begun and not ended
	at := r.good
	for {
		one, err := readRecord(in, r.size-at, buf)
		if errors.Is(err, io.EOF) && open {
			return errCut
		}
		if err != nil {
			return err
		}
		at += recordHead + int64(len(one.content))
		if each == nil {
			buf = one.content
		} else {
			group = append(group, one.content)
		}
		if open = one.more; open {
			continue
		}
		for _, content := range group {
			each(content)
		}
		group, r.good = nil, at
	}
}

// streamFile calls each with the same contents as readFile. The bytes are valid only until each
// returns. Damage is an error, unless the caller knows of it. It reads the file twice instead of keeping a group, which can be a whole listing of a
// store, until it is complete.
func streamFile(path string, known bool, each func(content []byte)) error {
	r, err := readFile(path, nil)
	switch {
	case err != nil:
		return err
	case r.damage != nil && !known:
		return fmt.Errorf("%s: %w", path, r.damage)
	case r.good == 0:
		return nil
	}
	f, err := plainfile.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	in := bufio.NewReaderSize(f, 1<<16)
	if _, err := readHeader(in); err != nil {
		return err
	}
	var buf []byte
	for at := headerSize; at < r.good; {
		one, err := readRecord(in, r.good-at, buf)
		if err != nil {
			return fmt.Errorf("%s has changed while it was read: %w", path, err)
		}
		at += recordHead + int64(len(one.content))
		each(one.content)
		buf = one.content
	}
	return nil
}
