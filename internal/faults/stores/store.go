// Package stores opens the stores of the fault matrix: real servers and files, with handles
// to kill, pause, cut off, damage and restore them. It is test code: no product package
// imports it.
//
//	for _, kind := range stores.Kinds() {
//		store := kind.Open(t, stores.Users) // with users, for a fault that needs them
//		err := store.Write(ctx, history.Change{Key: "if1", Text: "v1"})
//		store.Kill()
//	}
//
// A [Kind] is a store that can be opened; its abilities are a set of [Ability]. A [Store] is
// an open one. Each kind has a file of its own. The test writes names with texts, which the
// kind stores as interfaces under the prefix [Root]; value.go converts between both. A
// [Bench] is a store for benchmarks, which compare an agent with a bare client.
package stores

import (
	"context"
	"encoding/json"
	"testing"

	"github.com/keyplane/keyplane/internal/faults/history"
	"github.com/keyplane/keyplane/kvdbsync"
)

// An Ability is an operation that a store supports, or a property that a fault relies on.
// The comment of each names the fields of Store that have the operation.
type Ability uint

const (
	Servers       Ability = 1 << iota // Kill, Start, Pause, Continue
	Emptied                           // Kill, Wipe, Start
	Copies                            // Save, Restore
	CutDrop                           // Cut("drop"): connections are closed, and refused
	CutReset                          // Cut("reset"): the same by a TCP reset
	CutSilent                         // Cut("silent"): no byte passes, and connections stay open
	CutTaken                          // Cut("taken"): another program has it
	Compaction                        // Compact
	Users                             // opened with users: Revoke, Grant
	Tokens                            // opened with users, whose logins expire
	Certificates                      // opened with TLS: Rotate
	Leaders                           // MoveLeader
	LeaderLoss                        // LoseLeader
	Groups                            // changes of one write become visible together, always
	Resharding                        // Reshard
	FilesOfPeople                     // Dir
	SmallDisk                         // opened on a small disk: Dir
	Garbage                           // values are any bytes
	Many                              // holds a million keys, and an agent can follow them
	Children                          // a child process can use it as well: Config
	OneSilent                         // opened with a line that silences one connection: Silence
	SlowLine                          // opened with a line that can be slow: Slow
	Evicting                          // Evict
	OwnFile                           // the agent's own file: Save, Damage, Mend
	Rolling                           // Members
	BlockYAML                         // opened with files in YAML, half of which may be valid, and with a short grace
)

// CutAny has all ways to separate the agent from a store.
const CutAny = CutDrop | CutReset | CutSilent | CutTaken

// A Kind is a store that can be opened. Kinds lists all of them.
type Kind struct {
	Name string
	Can  Ability
	// Open starts a store, which ends with the test. extra are the abilities of Opened
	// that the fault needs.
	Open func(t testing.TB, extra Ability) *Store
	// Connect makes a connector from Store.Config, in this process or in a child.
	Connect func(config json.RawMessage) (kvdbsync.Connector, error)
}

// A Store is an open store. The fields of abilities that its kind lacks are nil.
type Store struct {
	Config    any // the argument of Connect
	Connector kvdbsync.Connector

	// Write makes changes at once; an empty text deletes. One goroutine calls it, and
	// repeats the call until it succeeds. It does not use the line that Cut cuts.
	Write func(ctx context.Context, changes ...history.Change) error
	// List returns the texts by name. Like Write it works while the line is cut.
	List func(ctx context.Context) (map[string]string, error)

	AtOnce   int // most changes that Write makes at once
	Homes    int // more than 1: one write cannot have names of different homes
	MaxValue int // bytes of the largest value
	MaxName  int // bytes of the longest name

	// The operations below fail the test by themselves, so they return no error.
	Kill, Start, Wipe, Pause, Continue func()
	Cut                                func(how string)
	Heal                               func()
	Compact                            func()
	Save, Restore                      func() // Restore may kill the store and start it again
	Damage                             func(how string)
	Mend                               func() // replaces the damaged file by the copy
	Revoke, Grant                      func()
	Rotate                             func()
	MoveLeader                         func()
	LoseLeader                         func() (back func())
	Reshard                            func()
	Members                            []Member // the store survives the stop of any one of them
	Dir                                string
	Lend                               func()                                             // gives a child access to a store that only one process can open
	Silence                            func() int                                         // silences the connection that waits for changes; returns the number of such connections
	Slow                               func(bytesPerSecond int)                           // 0: without limit
	Evict                              func()                                             // makes the server drop all keys for lack of memory
	SaveAs                             func(save func(path string, content []byte) error) // replaces the function by which Write saves a file
}

// A Member is one of several servers. Stop and Start are a rolling upgrade: the store's
// clients lose nothing. Start returns when the server serves.
type Member struct{ Stop, Start func() }

// Opened are the abilities of a store that is opened with them. Other abilities are always
// there.
const Opened = Users | Tokens | Certificates | SmallDisk | OneSilent | SlowLine | BlockYAML

// Kinds lists the stores of the matrix: each connector, with one server and with several.
func Kinds() []Kind {
	return []Kind{
		{"etcd", etcdCan | Many | Copies | Compaction | Users | Tokens | Certificates, openEtcd(1), connectEtcd},
		{"etcd, 3 members", etcdCan | Leaders | LeaderLoss | Rolling | Many, openEtcd(3), connectEtcd},
		{"Redis", redisCan, openRedis, connectRedis},
		{"Redis, Sentinel", redisSentinelCan, openRedisSentinel, connectRedis},
		{"Redis, Cluster", redisClusterCan, openRedisCluster, connectRedis},
		{"Consul", consulCan, openConsul(1), connectConsul},
		{"Consul, 3 servers", consulClusterCan, openConsul(3), connectConsul},
		{"Bolt", boltCan, openBolt, connectBolt},
		{"files", filedbCan, openFiledb, connectFiledb},
	}
}

// textsOf returns the texts by name of pairs with whole keys.
func textsOf(pairs []kvdbsync.Pair) map[string]string {
	out := make(map[string]string, len(pairs))
	for _, p := range pairs {
		out[NameOf(p.Key)] = TextOf(p.Value)
	}
	return out
}
