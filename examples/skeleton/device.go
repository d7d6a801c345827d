package skeleton

import (
	"context"
	"errors"
	"strings"
)

// A Device is the system, with only the calls that the verbs need. It must be safe for
// concurrent use.
type Device interface {
	// Add creates a policer and returns its number, or ErrTagTaken.
	Add(ctx context.Context, e Entry) (uint32, error)
	// Set changes rate and burst of a policer, or returns ErrNoPolicer.
	Set(ctx context.Context, id uint32, e Entry) error
	// Remove removes a policer, or returns ErrNoPolicer.
	Remove(ctx context.Context, id uint32) error
	// List returns all policers by number, including those of others.
	List(ctx context.Context) (map[uint32]Entry, error)
}

var (
	// ErrTagTaken means that the device has a policer with this tag.
	ErrTagTaken = errors.New("tag is taken")
	// ErrNoPolicer means that the device has no policer with this number.
	ErrNoPolicer = errors.New("no such policer")
)

// An Entry is a policer in the device.
type Entry struct {
	Tag      string // free text
	Port     string
	RateKbps uint32
	Burst    uint32 // bytes
}

// ourTag is the prefix of our tags; the name of the value follows.
const ourTag = "keyplane:"

// entryOf returns the policer that v declares.
func entryOf(v *Policer) Entry {
	return Entry{Tag: ourTag + v.GetName(), Port: v.GetPort(), RateKbps: v.GetRateKbps(), Burst: burst(v)}
}

// valueOf returns the value of a policer in the device, if it is ours.
func valueOf(e Entry) (*Policer, bool) {
	name, ours := strings.CutPrefix(e.Tag, ourTag)
	return &Policer{Name: name, Port: e.Port, RateKbps: e.RateKbps, BurstBytes: e.Burst}, ours
}
