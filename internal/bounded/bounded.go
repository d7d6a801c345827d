// Package bounded reads answers of servers that may send without an end.
//
//	err := json.NewDecoder(bounded.Reader(answer.Body, most)).Decode(&out)
package bounded

import (
	"errors"
	"fmt"
	"io"
)

// ErrTooLarge says that there is more than was expected.
var ErrTooLarge = errors.New("it is too large")

// Reader returns a reader of r that fails with ErrTooLarge after that many bytes.
func Reader(r io.Reader, most int64) io.Reader { return &reader{r, most, most} }

type reader struct {
	io.Reader
	left, most int64
}

// Read implements io.Reader.
func (r *reader) Read(p []byte) (n int, err error) {
	n, err = r.Reader.Read(p)
	if r.left -= int64(n); r.left < 0 {
		return 0, fmt.Errorf("%w: expected at most %d MiB", ErrTooLarge, r.most>>20)
	}
	return n, err
}
