// Package skeleton is a template for your own descriptor. Copy the folder, replace the
// policer with your item, and let the tests show the missing parts.
//
//	policers, err := skeleton.Register(s, device)
//	id, ok := policers.Get("uplink") // the number that the device assigned
//
// It keeps the policers of a [Device] as declared. policer.proto is the message that
// people write. policer.go has the pure functions, which make all decisions. verbs.go
// carries them out. device.go lists the calls to the system.
//
// Our policers carry our tag in the device. So Retrieve distinguishes them from those of
// others, which stay untouched. Each verb may be called again after its answer was lost.
//
// Tests: the conformance suite for descriptors over a device in memory, and a scheduler
// over the same device.
package skeleton

import (
	"errors"

	"github.com/keyplane/keyplane/models"
	"github.com/keyplane/keyplane/scheduler"
)

//go:generate go -C ../../tools run ./protogen ../examples

// Prefixes of keys. Ports have another descriptor.
const (
	Prefix     = "config/example/v1/policer/"
	PortPrefix = "config/example/v1/port/"
)

// Register adds the descriptor to s. The index has the number of each actual policer, by
// name.
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

// equivalent compares the entries that two versions need in the device.
func equivalent(_ string, old, new *Policer) bool { return entryOf(old) == entryOf(new) }

// recreate reports a change of the port: the device cannot move a policer.
func recreate(_ string, old, new *Policer, _ uint32) bool { return old.GetPort() != new.GetPort() }

func dependencies(_ string, v *Policer) []scheduler.Dependency {
	return []scheduler.Dependency{{Label: "port-exists", Key: PortPrefix + v.GetPort()}}
}

// burst returns the declared burst, or the default.
func burst(v *Policer) uint32 {
	if v.GetBurstBytes() != 0 {
		return v.GetBurstBytes()
	}
	const bytesPerKilobit, windows = 125, 10 // windows of 100 ms per second
	return uint32(uint64(v.GetRateKbps()) * bytesPerKilobit / windows)
}
