package faults

import (
	"context"
	"encoding/json"
	"testing"

	"github.com/keyplane/keyplane/internal/faults/history"
	"github.com/keyplane/keyplane/kvdbsync"
)

// An Ability is something that can be done to a store.
type Ability uint

const (
	Servers       Ability = 1 << iota // Kill, Start, Pause, Continue
	Emptied                           // Kill, Wipe, Start
	Copies                            // Save, Restore
	CutDrop                           // Cut("drop"): connections are closed, and refused
	CutReset                          // Cut("reset"): the same by a TCP reset
	CutSilent                         // Cut("silent"): nothing comes through, and nothing says so
	CutTaken                          // Cut("taken"): somebody else has it
	Compaction                        // Compact
	Users                             // opened with users: Revoke, Grant
	Tokens                            // opened with users, whose logins expire
	Certificates                      // opened with TLS: Rotate
	Leaders                           // MoveLeader
	LeaderLoss                        // LoseLeader
	Groups                            // what is written at once is seen at once, always
	Resharding                        // Reshard
	FilesOfPeople                     // Dir
	SmallDisk                         // opened on a small disk: Dir
	Garbage                           // values are any bytes
	Many                              // holds a million keys, and can be followed then
	Children                          // a child process can use it, too: Config
	OneSilent                         // opened with a line that silences one connection: Silence
	SlowLine                          // opened with a line that can be slow: Slow
	Evicting                          // Evict
	OwnFile                           // the agent's own file: Save, Damage, Mend
	Rolling                           // Members
	BlockYAML                         // opened with files in YAML, half of which may be valid, and with a short grace
)

// CutAny is each way to part the agent from the store.
const CutAny = CutDrop | CutReset | CutSilent | CutTaken

// A Kind is a store as it can be opened. It is a line in kinds.
type Kind struct {
	Name string
	Can  Ability
	// Open starts a store that ends with the test. extra is what of opened the fault needs.
	Open func(t testing.TB, extra Ability) *Store
	// Connect makes the connector of Store.Config, in this process or another.
	Connect func(config json.RawMessage) (kvdbsync.Connector, error)
}

// A Store is one that runs. What its kind cannot is nil.
type Store struct {
	Config    any // what Connect needs
	Connector kvdbsync.Connector

	// Write makes changes at once; an empty text deletes. It is called by one
	// goroutine, not through the line that is cut, and again until it has succeeded.
	Write func(ctx context.Context, changes ...history.Change) error
	// List is the text of each name.
	List func(ctx context.Context) (map[string]string, error)

	AtOnce   int // most changes that Write makes at once
	Homes    int // more than 1: names of different homes cannot be written at once
	MaxValue int // bytes of the largest value
	MaxName  int // bytes of the longest name

	Kill, Start, Wipe, Pause, Continue func()
	Cut                                func(how string)
	Heal                               func()
	Compact                            func()
	Save, Restore                      func() // Restore may kill and start
	Damage                             func(how string)
	Mend                               func() // puts the copy in the place of what is damaged
	Revoke, Grant                      func()
	Rotate                             func()
	MoveLeader                         func()
	LoseLeader                         func() (back func())
	Reshard                            func()
	Members                            []Member // of which the store can spare any one
	Dir                                string
	Lend                               func()                                             // lets a child have what only one process can
	Silence                            func() int                                         // silences the connection that waits for changes
	Slow                               func(bytesPerSecond int)                           // 0: as fast as it can
	Evict                              func()                                             // has the server drop keys for lack of memory, all there are
	SaveAs                             func(save func(path string, content []byte) error) // how Write saves a file
}

// A Member is one server of several, which is stopped and started as for an upgrade:
// without loss for the store's clients. Start returns once it serves.
type Member struct{ Stop, Start func() }

// opened are the abilities that a store has only if it is opened for them.
const opened = Users | Tokens | Certificates | SmallDisk | OneSilent | SlowLine | BlockYAML

// kinds is the table of stores.
func kinds() []Kind {
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

// textsOf are the texts by name of what a store has under whole keys.
func textsOf(pairs []kvdbsync.Pair) map[string]string {
	out := make(map[string]string, len(pairs))
	for _, p := range pairs {
		out[nameOf(p.Key)] = textOf(p.Value)
	}
	return out
}
