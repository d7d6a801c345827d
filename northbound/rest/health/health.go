// Package health decides whether an agent is ready: whether the network is as declared as far as
// possible. The HTTP API and the metrics show its answer, and supervisors act on it.
//
// It reads snapshots of the scheduler and of the sources, so a probe delays nobody. It
// distinguishes a system that needs time, which is not ready, from values that can never be
// applied: no wait and no restart of the agent would help against those.
package health

import (
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/keyplane/keyplane/kvdbsync"
	"github.com/keyplane/keyplane/northbound/rest/internal/reply"
	"github.com/keyplane/keyplane/northbound/rest/wire"
	"github.com/keyplane/keyplane/orchestrator"
	"github.com/keyplane/keyplane/scheduler"
	"github.com/keyplane/keyplane/scheduler/inspect"
)

// A Health tells whether the network is as declared as far as possible. Scheduler is
// required. Its methods may be called from any goroutine.
//
// The agent is ready when
//
//   - each source has delivered a complete listing, and the transaction with all of
//     them has ended;
//   - no source is withheld, because another agent has the label in its store;
//   - no declared value waits for a connection that is down, for a read-back, or for an operation
//     that runs;
//   - no failed value will be retried;
//   - its own state can be saved: otherwise the next start would not know what this one has done.
//
// Values that the agent cannot apply do not keep it from being ready: an invalid value, a value
// that waits for an undeclared one, and a value after its last failed attempt. They are listed as
// Unapplied.
type Health struct {
	Scheduler *scheduler.Scheduler
	Sources   interface{ Health() []orchestrator.Health } // nil: none
	// Version and Started are only passed on in the answers.
	Version wire.Version
	Started time.Time
	// Southbounds returns the connections to what is programmed. Defaults to none.
	Southbounds func() []Southbound

	// Unsaved returns why the agent cannot save its state; nil: it can. Defaults to that.
	Unsaved func() error

	complete atomic.Int64 // Unix time of the first Complete; 0: not yet
}

// A Southbound is the state of a connection.
type Southbound struct {
	Name      string // of the scheduler's connection: "vpp"
	Connected bool
	Reached   bool // it was connected at some time since the start
	// The last change of Connected.
	Since time.Time
	Err   error // why it is down
}

// Complete records that the transaction with all sources has ended.
func (h *Health) Complete() { h.complete.CompareAndSwap(0, time.Now().Unix()) }

// maxLines is the maximum number of lines in Missing and in Unapplied.
const maxLines = 20

// Status returns the present state. It reads snapshots, so no transaction waits for it.
// Its cost grows with the number of values.
func (h *Health) Status() wire.AgentStatus {
	out := wire.AgentStatus{
		BuildVersion: h.Version.Version, CommitHash: h.Version.GitCommit, State: wire.StateOK,
		StartTime: seconds(h.Started), LastChange: seconds(h.Started), LastUpdate: time.Now().Unix(),
		PluginStatus: map[string]wire.PluginStatus{}, NonFatalPlugins: []string{},
	}
	if h.Version.BuildTime != 0 {
		out.BuildDate = time.Unix(h.Version.BuildTime, 0).UTC().Format(time.RFC3339)
	}
	var missing, unapplied reasons
	h.addSources(&out, &missing)
	// Without a more precise reason.
	if h.complete.Load() == 0 && missing.n == 0 {
		missing.add("the declared values have not been applied yet")
	}
	needed := h.addValues(&missing, &unapplied)
	h.addSouthbounds(&out, needed)
	h.addUnsaved(&out, &missing)
	h.addOlder(&out)
	out.Missing, out.Unapplied = missing.list(), unapplied.list()
	if len(out.Missing) > 0 {
		out.State = wire.StateInit
	}
	for _, p := range out.Plugins {
		if p.State == wire.StateError && !slices.Contains(out.NonFatalPlugins, p.Name) {
			out.State = wire.StateError
		}
	}
	return out
}

// addUnsaved adds the agent's own state, if it cannot be saved.
func (h *Health) addUnsaved(out *wire.AgentStatus, missing *reasons) {
	if h.Unsaved == nil {
		return
	}
	if err := h.Unsaved(); err != nil {
		missing.add("the state cannot be saved: " + err.Error())
		out.Add(wire.PluginHealth{Name: "state", State: wire.StateError, Error: err.Error()}, time.Now().Unix())
	}
}

// addSources adds the sources. One that has delivered everything and was lost later does
// not count: its values stay in effect. One whose content may not be applied does. The first complete listing counts for ever,
// because the sources' values are kept across a loss and saved across a restart.
func (h *Health) addSources(out *wire.AgentStatus, missing *reasons) {
	if h.Sources == nil {
		return
	}
	for _, s := range h.Sources.Health() {
		one := wire.PluginHealth{Name: s.Source, State: wire.StateOK, Error: reply.ErrorText(s.Err)}
		switch {
		case s.State == kvdbsync.Withheld:
			one.State = wire.StateError
			missing.add(fmt.Sprintf("%s: what it says is not applied: %v", s.Source, s.Err))
		case !s.Complete && s.Err != nil:
			one.State = wire.StateError
			missing.add(fmt.Sprintf("%s: its values are not known yet: %v", s.Source, s.Err))
		case !s.Complete:
			one.State = wire.StateInit
			missing.add(s.Source + ": its values are not known yet")
		case s.Err != nil:
			one.State = wire.StateError
			out.NonFatalPlugins = append(out.NonFatalPlugins, s.Source)
		}
		out.Add(one, seconds(s.Since))
	}
}

// addValues adds the values that are not applied, and returns the connections that
// declared values wait for. A value that waits for a connection is a reason only if
// somebody declared it; without that rule an agent without VPP would never be ready.
func (h *Health) addValues(missing, unapplied *reasons) (needed map[string]bool) {
	needed = map[string]bool{}
	connections := map[string]string{}
	for _, d := range inspect.Descriptors(h.Scheduler) {
		connections[d.Name] = d.Connection
	}
	unknown := h.Scheduler.Unknown()
	for _, st := range h.unsettled() {
		line := fmt.Sprintf("%s is %s", st.Key, st.State)
		if why := strings.Join(append(slices.Clone(st.Details), reply.ErrorText(st.Err)), ", "); why != "" {
			line += ": " + strings.TrimSuffix(why, ", ")
		}
		if k, is := unknown[st.Descriptor]; is {
			line += "; unknown since " + k.Since.UTC().Format(time.RFC3339)
		}
		switch st.State {
		case scheduler.Retrying:
			missing.add(line)
		case scheduler.Pending:
			link := connections[st.Descriptor]
			needed[link] = needed[link] || waitsFor(st, link)
			if needsTime(st) {
				missing.add(line)
			} else {
				unapplied.add(line)
			}
		case scheduler.Invalid, scheduler.Failed, scheduler.Unimplemented, scheduler.Missing:
			unapplied.add(line)
		case scheduler.Nonexistent, scheduler.Removed, scheduler.Configured,
			scheduler.Obtained, scheduler.Discovered: // not among them
		}
	}
	return needed
}

// unsettled returns the values that are not as declared, sorted by key. They are usually few, while probes ask
// often.
func (h *Health) unsettled() (out []*scheduler.Status) {
	for st := range h.Scheduler.All() {
		switch st.State {
		case scheduler.Nonexistent, scheduler.Removed, scheduler.Configured,
			scheduler.Obtained, scheduler.Discovered: // as declared, or not declared
		case scheduler.Retrying, scheduler.Pending, scheduler.Invalid, scheduler.Failed, scheduler.Unimplemented, scheduler.Missing:
			out = append(out, st)
		}
	}
	slices.SortFunc(out, func(a, b *scheduler.Status) int { return strings.Compare(a.Key, b.Key) })
	return out
}

// needsTime reports whether a PENDING value needs only time: its operation runs, or it waits for its
// connection. Without an unmet dependency it waits for its operation. A dependency that names no value
// is the connection, or an operation.
func needsTime(st *scheduler.Status) bool {
	return len(st.Waits) == 0 || slices.ContainsFunc(st.Waits, func(d scheduler.Dependency) bool {
		return d.Key == "" && d.Keys == nil && d.Prefixes == nil && d.Match == nil
	})
}

// waitsFor reports whether a PENDING value waits for a connection that is down. The scheduler names
// the connection in a dependency without a key.
func waitsFor(st *scheduler.Status, connection string) bool {
	return connection != "" && slices.ContainsFunc(st.Waits, func(d scheduler.Dependency) bool {
		return d.Key == "" && strings.HasPrefix(d.Label, connection+": ")
	})
}

// addSouthbounds adds the connections. One that no declared value needs may be down. If it was never reached either, it
// is no error: most hosts have no VPP, and nobody has asked for one.
func (h *Health) addSouthbounds(out *wire.AgentStatus, needed map[string]bool) {
	if h.Southbounds == nil {
		return
	}
	for _, s := range h.Southbounds() {
		one := wire.PluginHealth{Name: s.Name, State: wire.StateOK}
		switch {
		case s.Connected:
		case needed[s.Name]:
			one.State, one.Error = wire.StateError, reply.ErrorText(s.Err)
		case s.Reached:
			one.State, one.Error = wire.StateError, reply.ErrorText(s.Err)
			out.NonFatalPlugins = append(out.NonFatalPlugins, s.Name)
		default:
			one.State, one.Error = wire.StateInit, "no declared value needs it; not reached: "+reply.ErrorText(s.Err)
		}
		out.Add(one, seconds(s.Since))
	}
}

// addOlder adds parts under the names that they have in vpp-agent 3.5, by which its clients wait for them. VPPAgent is
// the agent itself: OK once what its sources declare was applied for the first time.
func (h *Health) addOlder(out *wire.AgentStatus) {
	itself, since := wire.PluginHealth{Name: "VPPAgent", State: wire.StateInit}, out.StartTime
	if complete := h.complete.Load(); complete > 0 {
		itself.State, since = wire.StateOK, complete
	}
	out.Add(itself, since)
	vpp, known := out.PluginStatus["vpp"]
	if !known {
		return
	}
	for _, name := range []string{"govpp", "vpp-ifplugin"} {
		part := wire.PluginHealth{Name: name, State: vpp.State}
		if vpp.State == wire.StateError {
			part.Error = vpp.Error
		}
		out.Add(part, vpp.LastChange)
		if slices.Contains(out.NonFatalPlugins, "vpp") {
			out.NonFatalPlugins = append(out.NonFatalPlugins, name)
		}
	}
}

// A reasons counts texts and keeps the first maxLines.
type reasons struct {
	// n counts all texts; first has at most maxLines of them, so an answer stays small.
	n     int
	first []string
}

// add counts the text, and keeps it if there is room.
func (l *reasons) add(line string) {
	if l.n++; l.n <= maxLines {
		l.first = append(l.first, line)
	}
}

// list returns the kept texts, and a line with the number of the others.
func (l *reasons) list() []string {
	if l.n > maxLines {
		return append(l.first, fmt.Sprintf("and %d more", l.n-maxLines))
	}
	return l.first
}

// seconds returns Unix time; 0 for the zero time.
func seconds(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.Unix()
}
