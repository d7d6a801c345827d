package standing

import (
	"testing"
	"unsafe"
)

// TestSize guards the memory of a value that changes rarely and is read rarely.
func TestSize(t *testing.T) {
	if size := unsafe.Sizeof(Standing{}); size > 64 {
		t.Errorf("a Standing takes %d bytes; expected at most 64", size)
	}
}
