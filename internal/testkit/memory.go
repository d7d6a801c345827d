package testkit

import (
	"iter"
	"maps"
)

// A Memory is a scheduler.Memory that lives as long as the test.
type Memory map[string][]byte

// Load implements scheduler.Memory.
func (m Memory) Load() iter.Seq2[string, []byte] { return maps.All(m) }

// Save implements scheduler.Memory.
func (m Memory) Save(changes iter.Seq2[string, []byte]) error {
	for key, value := range changes {
		if m[key] = value; value == nil {
			delete(m, key)
		}
	}
	return nil
}
