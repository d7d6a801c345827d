package kind

import (
	"errors"
	"fmt"

	"google.golang.org/protobuf/proto"

	"github.com/keyplane/keyplane/models"
	"github.com/keyplane/keyplane/scheduler/internal/graph"
)

// A Decoder makes values from messages and from stored data. Any goroutine may use it after
// all descriptors are registered.
type Decoder struct {
	registry *Registry
	models   *models.Registry
	large    chan struct{} // has a token while a large value is decoded
}

// NewDecoder returns a Decoder for the descriptors of r.
func NewDecoder(r *Registry, m *models.Registry) *Decoder {
	return &Decoder{registry: r, models: m, large: make(chan struct{}, 1)}
}

// Value returns the value of a declared message. Without a descriptor of the key it returns no
// value. The error refuses the message.
func (d *Decoder) Value(key string, message proto.Message) (*graph.Value, error) {
	of := d.registry.Of(key)
	if of == nil {
		return nil, refuse(ErrUnimplemented, message)
	}
	v := d.registry.Declared(of, key, message)
	return v, refuse(v.Err(), message)
}

// largeData is the size in bytes above which one value at a time is decoded. Decoding and
// validating takes ten times that memory for a moment, and sources do it at the same time.
const largeData = 512 << 10

// Data returns the value of stored data; see scheduler.Scheduler.Decode.
func (d *Decoder) Data(key string, data []byte) (*graph.Value, error) {
	if len(data) > largeData {
		d.large <- struct{}{}
		defer func() { <-d.large }()
	}
	message, err := d.models.Decode(key, data)
	switch {
	case errors.Is(err, models.ErrNoModel):
		return nil, fmt.Errorf("%w: %w", ErrUnimplemented, err)
	case message == nil:
		return nil, err
	}
	v, invalid := d.Value(key, message)
	models.SpellFields(invalid, data) // nobody else has these errors yet
	switch {
	case err == nil:
		return v, invalid
	case invalid == nil:
		return nil, refuse(err, message)
	}
	return nil, refuse(models.Also(err, invalid), message)
}
