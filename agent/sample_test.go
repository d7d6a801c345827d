package agent

import (
	"context"
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/keyplane/keyplane/models"
	"github.com/keyplane/keyplane/models/sample"
	"github.com/keyplane/keyplane/scheduler"
)

// describedScheduler returns the scheduler of an agent with all descriptors. It has run, and has
// ended.
func describedScheduler(t *testing.T) *scheduler.Scheduler {
	t.Helper()
	o := bare(t)
	o.Without = []Part{HTTP, GRPC}
	made := make(chan *scheduler.Scheduler, 1)
	o.Northbounds = []Addition{func(p Parts) ([]Task, error) {
		made <- p.Scheduler
		return nil, nil
	}}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- Run(ctx, o) }()
	out := <-made
	cancel()
	if err := <-ended; err != nil {
		t.Fatal(err)
	}
	return out
}

// A sampled is one of the samples of a model.
type sampled struct {
	model  *models.Model
	number int // among the samples of the model
	key    string
	value  proto.Message
}

// allSamples returns the samples of all models that stores hold.
func allSamples(t *testing.T) (out []sampled) {
	t.Helper()
	for _, m := range models.BuiltIn().All() {
		if m.Class != "config" {
			continue
		}
		all, err := sample.All(m)
		if err != nil {
			t.Fatal(err)
		}
		for number, v := range all {
			key, err := m.Key(v)
			if err != nil {
				t.Fatal(err)
			}
			out = append(out, sampled{m, number, key, v})
		}
	}
	return out
}

// TestSamplesOfModelsAreValid has the descriptors of the agent accept each sample, and its
// derived values.
func TestSamplesOfModelsAreValid(t *testing.T) {
	s := describedScheduler(t)
	for _, one := range allSamples(t) {
		key, v := one.key, one.value
		if err := s.Validate(scheduler.KeyValue{Key: key, Value: v}); err != nil {
			t.Error(err)
		}
	}
}
