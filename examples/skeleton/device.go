package skeleton

import (
	"context"
	"errors"
	"strings"
)

// A Device is the system: a few calls, as narrow as the verbs need them. It may
// be called by several goroutines at once.
type Device interface {
	// Add makes a policer and returns its number, or ErrTagTaken.
	Add(ctx context.Context, e Entry) (uint32, error)
	// Set changes rate and burst of a policer, or returns ErrNoPolicer.
	Set(ctx context.Context, id uint32, e Entry) error
	// Remove removes a policer, or returns ErrNoPolicer.
	Remove(ctx context.Context, id uint32) error
	// List returns all policers, those of others too, by number.
	List(ctx context.Context) (map[uint32]Entry, error)
}

var (
	// ErrTagTaken says that the device has a policer with this tag.
	ErrTagTaken = errors.New("tag is taken")
	// ErrNoPolicer says that the device has no policer with this number.
	ErrNoPolicer = errors.New("no such policer")
)

// An Entry is a policer as the device has it.
type Entry struct {
	Tag      string // free text
	Port     string
	RateKbps uint32
	Burst    uint32 // bytes
}

// ourTag is what tags of ours begin with; the name of the value follows.
const ourTag = "keyplane:"

// entryOf is the policer that v asks for.
func entryOf(v *Policer) Entry {
	return Entry{Tag: ourTag + v.GetName(), Port: v.GetPort(), RateKbps: v.GetRateKbps(), Burst: burst(v)}
}

// valueOf is the value that a policer in the device is, if it is ours.
func valueOf(e Entry) (*Policer, bool) {
	name, ours := strings.CutPrefix(e.Tag, ourTag)
	return &Policer{Name: name, Port: e.Port, RateKbps: e.RateKbps, BurstBytes: e.Burst}, ours
}
