// Package skeleton is a descriptor to start your own from: copy the folder, put
// your item in place of the policer, and let the tests tell what is missing.
//
//	policers, err := skeleton.Register(s, device)
//	id, ok := policers.Get("uplink") // the number that the device gave it
//
// It keeps the policers of a [Device] as declared. policer.proto is what people
// write, policer.go what that means, verbs.go how it is done, device.go what is
// needed of the system. Whatever is decided is decided in policer.go, by pure
// functions; the verbs only carry it out.
//
// What is ours carries our tag in the device, so that Retrieve tells it from what
// others made, which is left alone. Each verb may be called again after its
// answer was lost.
//
// Tests: the descriptor conformance suite over a device in memory, and what the
// scheduler makes of it.
package skeleton

import (
	"errors"

	"github.com/keyplane/keyplane/models"
	"github.com/keyplane/keyplane/scheduler"
)

//go:generate go -C ../../tools run ./protogen ../examples

// What keys begin with. Ports are another descriptor's.
const (
	Prefix     = "config/example/v1/policer/"
	PortPrefix = "config/example/v1/port/"
)

// Register adds the descriptor to s. The index has the number of each policer
// that stands, by its name.
func Register(s *scheduler.Scheduler, d Device) (*scheduler.Index[uint32], error) {
	return scheduler.Register(s, descriptor(d))
}

func descriptor(d Device) scheduler.Descriptor[*Policer, uint32] {
	h := &handler{device: d}
	return scheduler.Descriptor[*Policer, uint32]{
		Name:       "example-policer",
		Prefix:     Prefix,
		Connection: "example-device",

		Validate:     validate,
		Equivalent:   equivalent,
		Recreate:     recreate,
		Dependencies: dependencies,

		Create:   h.create,
		Update:   h.update,
		Delete:   h.delete,
		Retrieve: h.retrieve,
	}
}

func validate(key string, v *Policer) error {
	const least, most = 8, 10_000_000
	var wrong []error
	if key != Prefix+v.GetName() {
		wrong = append(wrong, &models.FieldError{Field: "name", Value: v.GetName(), Expected: "the value in the key"})
	}
	if v.GetPort() == "" {
		wrong = append(wrong, &models.FieldError{Field: "port", Expected: "the name of a port"})
	}
	if r := v.GetRateKbps(); r < least || r > most {
		wrong = append(wrong, &models.FieldError{Field: "rate_kbps", Value: r, Expected: "a rate from 8 to 10000000"})
	}
	return errors.Join(wrong...)
}

// equivalent tells versions apart by what the device would be told.
func equivalent(_ string, old, new *Policer) bool { return entryOf(old) == entryOf(new) }

// recreate knows that the device cannot move a policer.
func recreate(_ string, old, new *Policer, _ uint32) bool { return old.GetPort() != new.GetPort() }

func dependencies(_ string, v *Policer) []scheduler.Dependency {
	return []scheduler.Dependency{{Label: "port-exists", Key: PortPrefix + v.GetPort()}}
}

// burst is what the value says, or the default.
func burst(v *Policer) uint32 {
	if v.GetBurstBytes() != 0 {
		return v.GetBurstBytes()
	}
	const bytesPerKilobit, windows = 125, 10 // of 100 ms, in a second
	return uint32(uint64(v.GetRateKbps()) * bytesPerKilobit / windows)
}
