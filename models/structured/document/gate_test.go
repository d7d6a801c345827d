package document_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/keyplane/keyplane/models/structured/document"
)

func TestGate(t *testing.T) {
	large, small := []byte("["+strings.Repeat("1,", 100_000)+"1]"), []byte("[1]")
	gate := document.NewGate()
	leave, err := gate.Enter(t.Context(), large)
	if err != nil {
		t.Fatal(err)
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := gate.Enter(ended, large); !errors.Is(err, context.Canceled) {
		t.Errorf("a second large text: %v, want that it waits until its context ends", err)
	}
	beside, err := gate.Enter(t.Context(), small)
	if err != nil {
		t.Fatal(err)
	}
	beside()
	leave()
	if leave, err = gate.Enter(t.Context(), large); err != nil {
		t.Fatal(err)
	}
	leave()
	if _, err := (*document.Gate)(nil).Enter(ended, large); err != nil {
		t.Errorf("without a gate: %v", err)
	}
}
