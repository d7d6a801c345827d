package bounded

import (
	"errors"
	"io"
	"strings"
	"testing"
)

func TestReader(t *testing.T) {
	if text, err := io.ReadAll(Reader(strings.NewReader("abc"), 3)); err != nil || string(text) != "abc" {
		t.Errorf("%q, %v; expected abc", text, err)
	}
	if _, err := io.ReadAll(Reader(strings.NewReader("abcd"), 3)); !errors.Is(err, ErrTooLarge) {
		t.Errorf("%v; expected %v", err, ErrTooLarge)
	}
}
