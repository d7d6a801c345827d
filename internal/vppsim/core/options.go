package core

import (
	"log/slog"
	"time"
)

// Options are the options of a Server; the zero value works.
type Options struct {
	Socket string // Defaults to /run/vpp/api.sock.
	// StatsSocket is where clients get the stats segment. Defaults to none: VPP has no
	// stats segment.
	StatsSocket string
	Release     string       // For example "23.06". Defaults to the newest of Releases.
	Log         *slog.Logger // Defaults to discarding.
	// Hardware names the interfaces that VPP finds at its start, for example
	// "GigabitEthernet0/8/0". Defaults to none.
	Hardware []string
	// Workers is the number of threads beside the main thread. Defaults to 0.
	Workers uint32
	// Without names plugins that are not loaded, for example "rdma". VPP does not know
	// their messages. Defaults to none.
	Without []string
	// Lacks names messages that VPP does not know. Defaults to none.
	Lacks []string
	// Unserved lists in the message table also the messages that no plugin serves, of all bindings that
	// the program imports. A request with one returns the value Unserved. Some clients need the whole
	// table of a release. Defaults to the served messages only, so that a test sees what it lacks.
	Unserved bool
	// TAP makes the Linux side of a TAP interface. Defaults to making none.
	TAP func(name string) (remove func(), err error)
}

// A Fault makes a message fail. Its fields combine; the zero value ends the fault.
type Fault struct {
	Skip   int           // This number of messages is served normally first.
	Times  int           // Then this number of messages fails. Defaults to all.
	Retval int32         // The reply has this return value, and the request has no effect.
	Delay  time.Duration // The answer, and everything behind it, comes later by this time.
	Done   bool          // With Retval or Die: the request takes effect nevertheless.
	Die    bool          // The process ends before it answers.
	// Respawn starts the process again at once, as a supervisor does. It needs Die.
	Respawn bool
	Mute    bool // No answer comes; of "interface events": no event.
}
