package bolt

import (
	"context"
	"errors"
	"os"
	"reflect"
	"unsafe"
)

// PanicInside panics as the library does on a damaged page: with its locks held.
func (db *DB) PanicInside(ctx context.Context) error {
	db.mu.Lock()
	defer db.mu.Unlock()
	if err := db.open(ctx); err != nil {
		return err
	}
	return db.guarded(func() error {
		if _, err := db.file.Begin(true); err != nil {
			return err
		}
		if _, err := db.file.Begin(false); err != nil {
			return err
		}
		panic("page 7: invalid page type: 0: 0")
	})
}

// errDisk is the error of a commit after FailCommit.
var errDisk = errors.New("input/output error")

// FailCommit makes the next commit fail. If written is true, that happens after the library has
// written its header, as when the sync of the header fails. The file must be open.
func (db *DB) FailCommit(written bool) error {
	field := reflect.ValueOf(db.file).Elem().FieldByName("ops").FieldByName("writeAt")
	writeAt := (*func([]byte, int64) (int, error))(unsafe.Pointer(field.UnsafeAddr()))
	real := *writeAt
	*writeAt = func(b []byte, offset int64) (int, error) {
		isHeader := offset < int64(2*os.Getpagesize())
		if written && !isHeader {
			return real(b, offset)
		}
		*writeAt = real
		if written {
			if _, err := real(b, offset); err != nil {
				return 0, err
			}
		}
		return 0, errDisk
	}
	return errDisk
}
