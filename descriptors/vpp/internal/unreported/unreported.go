// Package unreported remembers settings that VPP does not report, also over restarts of the agent. So an agent that
// starts beside a VPP that has run on sends none of them again.
//
//	notes := unreported.New(unreported.Options{Prefix: "vpp/ages", Memory: settings, Run: run})
//	done := notes.Begin("ip4")       // before VPP is asked: what it has is unknown from here on
//	...
//	done([]byte("240"))              // VPP has taken it
//	data, state := notes.Of("ip4")   // to read it back
//
// A note is of one run of VPP, from its start to its end. The states of a note are:
//
//	state     | begins with                                                  | VPP has
//	None      | Forget, or nothing was ever set                              | its default
//	Unknown   | Begin, which an error or a kill may follow; or a run of VPP  | any setting, or its default
//	          | that is another one, or was not recognized                   |
//	Known     | the function that Begin returned                             | the setting
package unreported

import (
	"bytes"
	"cmp"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/keyplane/keyplane/scheduler"
)

// Options are the options of Notes. Prefix is required.
type Options struct {
	// Prefix begins the keys in the memory, which has records of others too.
	Prefix string
	// Memory keeps the notes over restarts of the agent. Defaults to none: they end with it.
	Memory scheduler.Memory
	// Run identifies the run of VPP that is connected now, or was last. Defaults to one that never ends.
	Run func() string
	Log *slog.Logger // Defaults to slog.Default.
}

// Notes are those of one kind of setting. They may be used concurrently.
type Notes struct {
	Options

	mu     sync.Mutex // guards byName
	byName map[string][]byte
}

// A State is what a note says about VPP.
type State int

// See the table of the package.
const (
	None State = iota
	Unknown
	Known
)

// unknown is a note of a setting whose outcome is unknown. Agents that knew no runs wrote no other one.
const unknown = "set"

// New returns the notes that earlier agents have left in the memory.
func New(o Options) *Notes {
	o.Log = cmp.Or(o.Log, slog.Default())
	if o.Run == nil {
		o.Run = func() string { return "" }
	}
	n := &Notes{Options: o, byName: map[string][]byte{}}
	if o.Memory == nil {
		return n
	}
	for key, note := range o.Memory.Load() {
		if name, is := strings.CutPrefix(key, o.Prefix); is {
			n.byName[name] = note
		}
	}
	return n
}

// Begin notes that VPP is about to get a setting. It returns a function that is called with the setting when VPP has
// taken it. The run is that of Begin: an answer may arrive when VPP has been restarted already.
func (n *Notes) Begin(name string) (done func(setting []byte)) {
	run := n.Run()
	n.write(name, []byte(unknown))
	return func(setting []byte) { n.write(name, slices.Concat([]byte(run), []byte{0}, setting)) }
}

// Forget notes that VPP has no such setting, or its default.
func (n *Notes) Forget(name string) { n.write(name, nil) }

// Of returns a setting, which is empty unless it is Known.
func (n *Notes) Of(name string) (setting []byte, state State) {
	n.mu.Lock()
	defer n.mu.Unlock()
	note, noted := n.byName[name]
	if !noted {
		return nil, None
	}
	run, setting, is := bytes.Cut(note, []byte{0})
	if !is || string(run) != n.Run() {
		return nil, Unknown
	}
	return setting, Known
}

// Names returns the names of all notes, in order.
func (n *Notes) Names() []string {
	n.mu.Lock()
	defer n.mu.Unlock()
	return slices.Sorted(maps.Keys(n.byName))
}

// write changes a note; nil removes it.
func (n *Notes) write(name string, note []byte) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if bytes.Equal(n.byName[name], note) {
		return
	}
	n.byName[name] = note
	if note == nil {
		delete(n.byName, name)
	}
	if n.Memory == nil {
		return
	}
	if err := n.Memory.Save(maps.All(map[string][]byte{n.Prefix + name: note})); err != nil {
		n.Log.Error("a setting that VPP does not report cannot be noted; after a restart of the agent it is set again, or a removed one stays in VPP",
			"setting", n.Prefix+name, "err", err)
	}
}
