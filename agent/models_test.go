package agent

import (
	"context"
	"strings"
	"testing"

	"github.com/keyplane/keyplane/models"
	"github.com/keyplane/keyplane/scheduler/inspect"
)

// TestEveryModelIsHandled has no value end as UNIMPLEMENTED for want of a descriptor.
func TestEveryModelIsHandled(t *testing.T) {
	o := bare(t)
	o.Without = []Part{HTTP, GRPC}
	prefixes := make(chan []string, 1)
	o.Northbounds = []Addition{func(p Parts) ([]Task, error) {
		var out []string
		for _, d := range inspect.Descriptors(p.Scheduler) {
			out = append(out, d.Prefix)
		}
		prefixes <- out
		return nil, nil
	}}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- Run(ctx, o) }()
	handled := <-prefixes
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
	for _, m := range models.BuiltIn().All() {
		if !strings.HasPrefix(m.Prefix(), "config/") {
			continue
		}
		found := false
		for _, prefix := range handled {
			found = found || strings.HasPrefix(m.Prefix(), prefix)
		}
		if !found {
			t.Errorf("model %s: no descriptor has keys below %s", m.Name(), m.Prefix())
		}
	}
}
