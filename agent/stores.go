package agent

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strings"

	"github.com/keyplane/keyplane/connectors/bolt"
	"github.com/keyplane/keyplane/connectors/consul"
	"github.com/keyplane/keyplane/connectors/etcd"
	"github.com/keyplane/keyplane/connectors/filedb"
	"github.com/keyplane/keyplane/connectors/initfile"
	"github.com/keyplane/keyplane/connectors/redis"
	"github.com/keyplane/keyplane/internal/config"
	"github.com/keyplane/keyplane/internal/owner"
	"github.com/keyplane/keyplane/kvdbsync"
	"github.com/keyplane/keyplane/models/structured/document"
	"github.com/keyplane/keyplane/orchestrator"
)

// A storeKind is a kind of store that can declare the network.
type storeKind struct {
	name     string
	flag     string
	file     string // its configuration; the store is used if the file exists
	priority int    // if several stores have a key, the highest priority wins
	// open reads the configuration and creates the connector, or returns nil without one.
	open func(o opener) (kvdbsync.Connector, error)
}

// storeKinds returns the table of all kinds. Stores closer to the host have a higher
// priority, so that an operator on the host can override a central store.
func (s *settings) storeKinds() []storeKind {
	return []storeKind{
		{"bolt", "bolt-config", s.BoltConfig, 30, openBolt},
		{"filedb", "filedb-config", s.FiledbConfig, 20, openFiledb},
		{"etcd", "etcd-config", s.EtcdConfig, 10, openEtcd},
		{"redis", "redis-config", s.RedisConfig, 8, openRedis},
		{"consul", "consul-config", s.ConsulConfig, 6, openConsul},
		{"initfile", "initfileregistry-config", s.InitfileConfig, 0, openInitfile},
	}
}

// storeNames returns the names of all kinds of store.
func storeNames() (out []string) {
	for _, kind := range (&settings{}).storeKinds() {
		out = append(out, kind.name)
	}
	return out
}

// An opener holds the parameters of opening a store.
type opener struct {
	root string // of the agent's keys: "/vnf-agent/vpp1/"
	log  *slog.Logger
	// load reads the configuration, and reports whether it exists.
	load func(into any) (bool, error)
	dir  string // of configuration files
	// bounds are those of what the store may hold.
	bounds kvdbsync.Bounds
	gate   *document.Gate // for large texts
}

// openBolt returns nil without a configuration file, as the other openers do.
func openBolt(o opener) (kvdbsync.Connector, error) {
	var cfg bolt.Config
	if found, err := o.load(&cfg); !found || err != nil {
		return nil, err
	}
	cfg.Bounds = o.bounds
	return bolt.New(cfg)
}

func openFiledb(o opener) (kvdbsync.Connector, error) {
	var cfg filedb.Config
	if found, err := o.load(&cfg); !found || err != nil {
		return nil, err
	}
	cfg.Gate = o.gate
	return filedb.New(cfg, o.root, o.log)
}

func openEtcd(o opener) (kvdbsync.Connector, error) {
	var cfg etcd.Config
	if found, err := o.load(&cfg); !found || err != nil {
		return nil, err
	}
	cfg.Bounds = o.bounds
	return etcd.New(cfg, o.log), nil
}

// openConsul also makes a client for writing; both read the same configuration.
func openConsul(o opener) (kvdbsync.Connector, error) {
	var cfg consul.Config
	if found, err := o.load(&cfg); !found || err != nil {
		return nil, err
	}
	cfg.Bounds = o.bounds
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	client, err := consul.Dial(cfg)
	if err != nil {
		return nil, err
	}
	return consulStore{consul.New(cfg, o.log), client}, nil
}

// A consulStore is watched, published to, and edited with agentctl.
type consulStore struct {
	*consul.Connector
	*consul.Client
}

// openInitfile uses its defaults if it has no configuration, unlike the others.
func openInitfile(o opener) (kvdbsync.Connector, error) {
	cfg := initfile.Defaults()
	found, err := o.load(&cfg)
	if err != nil {
		return nil, err
	}
	if path, found := config.Find(cfg.Path, o.dir); found {
		cfg.Path = path
	}
	file, err := initfile.New(cfg, o.root)
	if errors.Is(err, initfile.ErrNone) {
		if found {
			o.log.Info("no initial file; no values are declared at the start", "why", err)
		}
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	for _, w := range file.Warnings {
		o.log.Warn("accepted an invalid part of a file", "warning", w)
	}
	return file, nil
}

// openRedis also makes a client for writing, and directs the library's log into ours.
func openRedis(o opener) (kvdbsync.Connector, error) {
	var cfg redis.Config
	if found, err := o.load(&cfg); !found || err != nil {
		return nil, err
	}
	cfg.Bounds = o.bounds
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	redis.LogTo(o.log)
	client, err := redis.Dial(context.Background(), cfg)
	if err != nil {
		return nil, err
	}
	return redisStore{redis.New(cfg, o.log), client}, nil
}

// A redisStore is watched, published to, and edited with agentctl.
type redisStore struct {
	*redis.Connector
	*redis.Client
}

// A store is a configured store.
type store struct {
	name      string
	connector kvdbsync.Connector
	priority  int

	source *kvdbsync.Source // set by watch
	keeper *owner.Keeper    // set by watch; nil: the store has no leases
}

type stores []store

// errNoStore reports that no store is configured.
var errNoStore = errors.New("no store to read the network from")

// openStores opens each configured store. It connects to none of them, so that the agent
// starts even if some are down.
func openStores(s *settings, f files, oc orchestratorConfig, gate *document.Gate, log *slog.Logger) (stores, error) {
	var out stores
	root := s.root()
	for _, kind := range s.storeKinds() {
		connector, err := kind.open(opener{root: root, bounds: oc.bounds(), gate: gate, log: log.With("source", kind.name), dir: f.dir, load: func(into any) (bool, error) {
			return f.load(kind.flag, kind.file, into)
		}})
		if err != nil {
			return out, fmt.Errorf("%w: %s: %w", errConfig, kind.name, err)
		}
		if connector == nil {
			continue
		}
		out = append(out, store{name: kind.name, connector: connector, priority: oc.priority(kind)})
	}
	if len(out) > 0 {
		return out, nil
	}
	if s.asksForStore() {
		return nil, noStore(s)
	}
	log.Warn("no store is configured; only clients declare values", "config_dir", s.ConfigDir)
	return nil, nil
}

// asksForStore reports that a flag names the file of a store. If none of them exists, an
// agent without stores is not the intention.
func (s *settings) asksForStore() bool {
	for _, kind := range s.storeKinds() {
		if s.Given[kind.flag] && kind.file != "" {
			return true
		}
	}
	return false
}

// watch creates the source of each store, with the options given but for Name and
// Connector, and the keeper of its lease if it supports leases.
func (s stores) watch(self owner.Holder, pause func(context.Context) func(), options kvdbsync.Options) {
	for i := range s {
		one, watched := &s[i], s[i].connector
		if leaser, ok := one.connector.(kvdbsync.Leaser); ok {
			one.keeper = owner.NewKeeper(owner.Options{
				Store: one.name, Leaser: leaser, Key: owner.Key(options.Root), Self: self, Pause: pause, Log: options.Log,
			})
			watched = owner.Admitting(watched, one.keeper)
		}
		options.Name, options.Connector = one.name, watched
		one.source = kvdbsync.NewSource(options)
	}
}

// noStore returns the error of an agent without any store. It names the files that were
// searched, and the shortest configuration that works.
func noStore(s *settings) error {
	var text strings.Builder
	for _, kind := range s.storeKinds() {
		fmt.Fprintf(&text, "\n  %-9s -%s, now %s", kind.name, kind.flag, kind.file)
	}
	return fmt.Errorf("%w: %w: none of these files exists, neither as a path nor in the folder %s:%s\n"+
		"The shortest configuration is one line in a file filedb.conf: configuration-paths: [FOLDER]\n"+
		"with YAML files in FOLDER. conf/ contains documented samples of all files", errConfig, errNoStore, s.ConfigDir, text.String())
}

// names returns the names of the configured stores.
func (s stores) names() (out []string) {
	for _, one := range s {
		out = append(out, one.name)
	}
	return out
}

// layers returns the stores as sources of the orchestrator.
func (s stores) layers() (out []orchestrator.Source) {
	for _, one := range s {
		out = append(out, orchestrator.Source{Name: one.name, Priority: one.priority, Feed: one.source})
	}
	return out
}

// tasks returns a task for each source, and one for a store that compacts itself.
func (s stores) tasks() (out []task) {
	for _, one := range s {
		out = append(out, task{"source " + one.name, one.source.Run})
		if c, ok := one.connector.(interface{ AutoCompact(context.Context) error }); ok {
			out = append(out, task{"compaction of " + one.name, c.AutoCompact})
		}
	}
	return out
}

// editable returns the stores that can be read, and perhaps written, by key.
func (s stores) editable() map[string]kvdbsync.Store {
	out := map[string]kvdbsync.Store{}
	for _, one := range s {
		if editable, ok := one.connector.(kvdbsync.Store); ok {
			out[one.name] = editable
		}
	}
	return out
}

// Close closes the connectors.
func (s stores) Close() error {
	var errs []error
	for _, one := range s {
		if closer, ok := one.connector.(io.Closer); ok {
			errs = append(errs, closer.Close())
		}
	}
	return errors.Join(errs...)
}
