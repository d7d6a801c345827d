package floors

import (
	"path"
	"slices"
	"strings"
	"testing"
)

// A floor says what the packages of a folder may import of ours, besides what
// is below their own folder. "*" stands for one element of a path: with
// "connectors/*" each connector is a folder of its own, and none sees another.
// Of the folders that fit, the longest counts.
type floor struct {
	folder string
	may    []string
}

// everywhere are packages that know nothing of keyplane; any package may import them.
var everywhere = []string{
	"internal/appear", "internal/backoff", "internal/bootid", "internal/bounded", "internal/budget", "internal/capability", "internal/conns", "internal/guard", "internal/keyset", "internal/logs", "internal/mailbox", "internal/mappings", "internal/nearest", "internal/packed", "internal/plainfile", "internal/pulse", "internal/sender", "internal/settingfile", "internal/tlsfiles", "internal/userinfo", "internal/wake", "internal/watchdog", "internal/yamlplace",
}

func floors() []floor {
	return []floor{
		{"proto", nil},
		{"models", []string{"proto"}},
		{"scheduler/internal", []string{"internal/printable", "models", "proto"}},
		// It is on top of the scheduler, for the packages that show it.
		{"scheduler/internal/actual", []string{"scheduler"}},
		{"scheduler", []string{"internal/printable", "models", "proto", "scheduler/internal"}},
		{"kvdbsync", []string{"internal/printable", "models"}},
		{"kvdbsync/conformance", []string{"kvdbsync"}},
		{"statestore", nil},
		{"orchestrator", []string{"internal/summary", "kvdbsync", "models", "proto", "scheduler"}},
		{"connectors/*", []string{"internal/config", "internal/filelease", "internal/links", "internal/printable", "kvdbsync", "models"}},
		{"descriptors/*", []string{"internal/alloc", "internal/config", "internal/lists", "internal/printable", "internal/spelling", "internal/vppsim", "internal/vppwire", "models", "proto", "scheduler"}},
		{"descriptors/vpp/internal/existing", []string{"descriptors/vpp/conn", "descriptors/vpp/iface", "descriptors/vpp/internal/ifindex", "descriptors/vpp/internal/leftovers", "descriptors/vpp/internal/simulated", "scheduler"}},
		{"descriptors/vpp/internal/simulated", []string{"descriptors/vpp/conn", "internal/testkit", "internal/vppsim", "internal/vppwire"}},
		{"northbound/*", []string{"internal/config", "internal/printable", "internal/reach", "kvdbsync", "models", "orchestrator", "proto", "scheduler"}},
		{"client", []string{"internal/reach", "kvdbsync", "models", "orchestrator", "proto", "scheduler"}},
		{"internal/alloc", nil},
		{"internal/appear", nil},
		{"internal/backoff", nil},
		{"internal/bootid", nil},
		{"internal/bounded", nil},
		{"internal/budget", nil},
		{"internal/capability", nil},
		{"internal/config", nil},
		{"internal/conns", nil},
		{"internal/coverage", nil},
		{"internal/fakeengine", nil},
		{"internal/faults", []string{"connectors", "internal/owner", "internal/scratch", "internal/testkit", "kvdbsync", "models", "orchestrator", "proto", "scheduler", "statestore"}},
		{"internal/faults/history", nil},
		{"internal/faults/stores", []string{"connectors", "internal/faults/history", "internal/scratch", "internal/testkit", "kvdbsync", "models", "proto"}},
		{"internal/filelease", nil},
		{"internal/fleet", []string{"agent", "internal/backoff", "internal/testkit", "kvdbsync", "models", "orchestrator", "proto", "scheduler"}},
		{"internal/floors", nil},
		{"internal/gotest", nil},
		{"internal/guard", nil},
		{"internal/keyset", nil},
		{"internal/licences", nil},
		{"internal/links", nil},
		{"internal/logs", nil},
		{"internal/mailbox", nil},
		{"internal/mappings", nil},
		{"internal/nearest", nil},
		{"internal/packed", nil},
		{"internal/lists", nil},
		{"internal/olderctl", []string{"agent", "internal/scratch", "internal/testkit", "internal/vppsim", "proto"}},
		{"internal/packets", []string{"descriptors", "internal/scratch", "internal/testkit", "models", "scheduler"}},
		{"internal/owner", []string{"kvdbsync"}},
		{"internal/plainfile", nil},
		{"internal/printable", nil},
		{"internal/pulse", nil},
		{"internal/reach", nil},
		{"internal/scratch", nil},
		{"internal/sender", nil},
		{"internal/settingfile", nil},
		{"internal/siege", []string{"internal/scratch", "internal/testkit", "internal/vppsim"}},
		{"internal/spelling", []string{"models"}},
		{"internal/summary", nil},
		{"internal/testkit", []string{"internal/scratch"}},
		{"internal/testkit/readme", []string{"models"}},
		{"internal/tlsfiles", []string{"internal/testkit"}},
		{"internal/userinfo", nil},
		{"internal/vppsim", []string{"internal/vppwire"}},
		{"internal/vppsim/*", []string{"internal/vppsim/core", "internal/vppsim/ip", "internal/vppsim/l2", "internal/vppsim/tunnel", "internal/vppwire"}},
		{"internal/vppsim/core", []string{"internal/vppwire"}},
		{"internal/vppsim/ip", []string{"internal/vppsim/core", "internal/vppwire"}},
		{"internal/vppsim/l2", []string{"internal/vppsim/core", "internal/vppwire"}},
		{"internal/vppwire", nil},
		{"internal/yamlplace", nil},
		{"internal/wake", nil},
		{"internal/watchdog", nil},
		{"internal/walk", []string{"client", "internal/scratch", "internal/testkit", "internal/vppsim", "proto"}},
		{"internal/walk/walked", []string{"agent"}},
		{"agent", []string{"client", "connectors", "descriptors", "internal/config", "internal/owner", "internal/printable", "internal/reach", "kvdbsync", "models", "northbound", "orchestrator", "proto", "scheduler", "statestore"}},
		{"cmd/agent", []string{"agent"}},
		{"cmd/agentctl", []string{"cmd/agentctl/internal/cli", "connectors"}},
		// The commands do not know each other, so that each can change alone.
		{"cmd/agentctl/internal/*", []string{"cmd/agentctl/internal/documents", "cmd/agentctl/internal/files", "cmd/agentctl/internal/names", "cmd/agentctl/internal/saved", "cmd/agentctl/internal/session", "cmd/agentctl/internal/show", "internal/printable", "internal/summary", "kvdbsync", "models", "northbound", "proto"}},
		{"cmd/agentctl/internal/cli", []string{"cmd/agentctl/internal", "connectors", "internal/printable", "kvdbsync", "models", "northbound", "orchestrator", "proto", "scheduler"}},
		{"cmd/agentctl/internal/documents", []string{"cmd/agentctl/internal/files", "cmd/agentctl/internal/show", "kvdbsync", "models", "northbound"}},
		{"cmd/agentctl/internal/files", nil},
		{"cmd/agentctl/internal/names", []string{"cmd/agentctl/internal/session", "cmd/agentctl/internal/show", "northbound"}},
		{"cmd/agentctl/internal/saved", []string{"cmd/agentctl/internal/files", "northbound"}},
		{"cmd/agentctl/internal/session", []string{"cmd/agentctl/internal/show", "connectors", "internal/config", "internal/printable", "internal/reach", "kvdbsync", "models", "northbound", "proto"}},
		{"cmd/agentctl/internal/show", []string{"internal/printable", "models", "northbound", "proto"}},
		{"cmd/vppsim", []string{"descriptors", "internal/vppsim"}},
		{"packaging", []string{"internal/scratch", "internal/testkit"}},
		{"examples/custom-agent", []string{"agent", "models", "scheduler"}},
		{"examples/hello-agent", []string{"agent", "kvdbsync"}},
		{"examples/web-store", []string{"agent", "kvdbsync"}},
		// Its pictures are those that the agent draws.
		{"examples/mock-southbound", []string{"models", "northbound", "proto", "scheduler"}},
		{"examples/*", []string{"internal/scratch", "models", "proto", "scheduler"}},
	}
}

func TestImportsGoDown(t *testing.T) {
	for _, p := range packages(t) {
		f, own, ok := floorOf(p.Dir)
		if !ok {
			t.Errorf("%s is on no floor: give it a line in floors()", p.Dir)
			continue
		}
		for dir, file := range p.Imports() {
			if !allowed(f, own, dir) {
				t.Errorf("%s imports %s, but %s may import only %s", file, dir, f.folder, strings.Join(f.may, ", "))
			}
		}
	}
}

// floorOf returns the floor of dir, and which folder is its own.
func floorOf(dir string) (best floor, own string, ok bool) {
	for _, f := range floors() {
		if under, fits := within(dir, f.folder); fits && len(f.folder) > len(best.folder) {
			best, own, ok = f, under, true
		}
	}
	return best, own, ok
}

func allowed(f floor, own, dir string) bool {
	if dir == own || strings.HasPrefix(dir, own+"/") {
		return true
	}
	for _, may := range slices.Concat(f.may, everywhere) {
		if dir == may || strings.HasPrefix(dir, may+"/") {
			return !internalElsewhere(own, dir)
		}
	}
	return false
}

// internalElsewhere tells an internal folder of another part: connectors/etcd/internal/x.
func internalElsewhere(own, dir string) bool {
	part, _, found := strings.Cut(dir, "/internal/")
	return found && part != "" && own != part && !strings.HasPrefix(own, part+"/")
}

// within returns the beginning of dir that pattern fits.
func within(dir, pattern string) (string, bool) {
	n := strings.Count(pattern, "/") + 1
	elements := strings.Split(dir, "/")
	if len(elements) < n {
		return "", false
	}
	head := strings.Join(elements[:n], "/")
	fits, err := path.Match(pattern, head)
	return head, fits && err == nil
}

func TestTheRulesThemselves(t *testing.T) {
	tests := []struct {
		from, to string
		want     bool
	}{
		{"connectors/etcd", "kvdbsync", true},
		{"connectors/etcd", "connectors/etcd/internal/lease", true},
		{"connectors/etcd", "connectors/bolt", false},
		{"connectors/etcd", "scheduler", false},
		{"descriptors/linux/l3", "descriptors/linux/keys", true},
		{"descriptors/linux/l3", "kvdbsync", false},
		{"descriptors/linux/l3", "scheduler/internal/graph", false},
		{"kvdbsync", "scheduler", false},
		{"scheduler", "kvdbsync", false},
		{"scheduler", "scheduler/internal/graph", true},
		{"scheduler/internal/graph", "scheduler", false},
		{"orchestrator", "connectors/etcd", false},
		{"northbound/kvdb", "orchestrator", true},
		{"internal/vppsim/vxlan", "internal/vppsim/ip", true},
		{"internal/vppsim/vxlan", "internal/vppsim/gre", false},
		{"internal/vppsim/ip", "internal/vppsim/l2", false},
		{"internal/vppsim", "internal/vppsim/gre", true},
		{"orchestrator", "northbound/kvdb", false},
		{"examples/first-light", "cmd/agent", false},
		{"cmd/agentctl", "cmd/agent", false},
		{"cmd/agentctl", "agent", false},
		{"cmd/agentctl/internal/plan", "cmd/agentctl/internal/session", true},
		{"cmd/agentctl/internal/plan", "cmd/agentctl/internal/kv", false},
		{"cmd/agent", "agent", true},
		{"northbound/rest", "agent", false},
	}
	for _, tt := range tests {
		f, own, ok := floorOf(tt.from)
		if !ok {
			t.Fatalf("%s is on no floor", tt.from)
		}
		if got := allowed(f, own, tt.to); got != tt.want {
			t.Errorf("%s imports %s: allowed %v, want %v", tt.from, tt.to, got, tt.want)
		}
	}
}
