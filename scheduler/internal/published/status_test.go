package published

import (
	"testing"
	"unsafe"
)

// TestSize guards the memory of a value that changes rarely and is read rarely.
func TestSize(t *testing.T) {
	if size := unsafe.Sizeof(Status{}); size > 64 {
		t.Errorf("a Status takes %d bytes; expected at most 64", size)
	}
}
