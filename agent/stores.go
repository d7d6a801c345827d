package agent

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"path/filepath"
	"slices"
	"strings"

	"github.com/keyplane/keyplane/connectors/bolt"
	"github.com/keyplane/keyplane/connectors/consul"
	"github.com/keyplane/keyplane/connectors/etcd"
	"github.com/keyplane/keyplane/connectors/filedb"
	"github.com/keyplane/keyplane/connectors/initfile"
	"github.com/keyplane/keyplane/connectors/redis"
	"github.com/keyplane/keyplane/internal/budget"
	"github.com/keyplane/keyplane/internal/logs"
	"github.com/keyplane/keyplane/internal/owner"
	"github.com/keyplane/keyplane/internal/wake"
	"github.com/keyplane/keyplane/kvdbsync"
	"github.com/keyplane/keyplane/models"
	"github.com/keyplane/keyplane/northbound/rest"
	"github.com/keyplane/keyplane/orchestrator"
)

// A storeKind is a kind of store that can declare the network.
type storeKind struct {
	name string
	// The flag that names the configuration file, without the hyphen.
	flag     string
	file     string // its configuration; the store is used if the file exists; disabled: it is off
	priority int    // if several stores have a key, the highest priority wins
	// open reads the configuration and creates the connector, or returns nil without one.
	open func(o StoreOptions) (kvdbsync.Connector, error)
}

// disabled as the name of a store's file turns the store off. Deployments of earlier agents use it.
const disabled = "DISABLED"

// A StoreKind is a kind of store that is not built in.
type StoreKind struct {
	// Name is that of its source, in logs, in the keys priorities and publish-status of
	// orchestrator.conf, and for agentctl. It is required.
	Name string
	// Flag names its configuration file, or is DISABLED. Defaults to NAME-config.
	Flag string
	// File is the default of Flag. Defaults to NAME.conf.
	File string
	// Help is the line about Flag in the help.
	Help string
	// Priority orders the stores: if several have a key, the highest wins. Those of the
	// built-in ones are 30 (bolt), 20 (filedb), 10 (etcd), 8 (redis), 6 (consul) and 0
	// (initfile).
	Priority int
	// Open returns the connector, or nil if the store is not configured. It does not
	// connect, so that the agent starts while the store is down. If the connector has
	// Close, it is called at the end. It may implement kvdbsync.Store, Publisher and
	// Leaser. Open is required.
	Open func(StoreOptions) (kvdbsync.Connector, error)
}

// complete returns k with the default of each field that a program left empty.
func (k StoreKind) complete() StoreKind {
	k.Flag = cmp.Or(k.Flag, k.Name+"-config")
	k.File = cmp.Or(k.File, k.Name+".conf")
	k.Help = cmp.Or(k.Help, "the store "+k.Name)
	return k
}

// storeKinds returns the table of all kinds. Stores closer to the host have a higher
// priority, so that an operator on the host can override a central store.
func (s *settings) storeKinds() []storeKind {
	all := []storeKind{
		{"bolt", "bolt-config", s.BoltConfig, 30, openBolt},
		{"filedb", "filedb-config", s.FiledbConfig, 20, openFiledb},
		{"etcd", "etcd-config", s.EtcdConfig, 10, openEtcd},
		{"redis", "redis-config", s.RedisConfig, 8, openRedis},
		{"consul", "consul-config", s.ConsulConfig, 6, openConsul},
		{"initfile", "initfileregistry-config", s.InitfileConfig, 0, openInitfile},
	}
	all = slices.DeleteFunc(all, func(kind storeKind) bool { return s.options.lacks(Part(kind.name)) })
	for _, own := range s.options.Stores {
		own = own.complete()
		file := own.File
		if given := s.storeFiles[own.Name]; given != nil {
			file = *given
		}
		all = append(all, storeKind{own.Name, own.Flag, file, own.Priority, own.Open})
	}
	return all
}

// StoreOptions are the parameters of opening a store.
type StoreOptions struct {
	Root string // of the agent's keys: "/vnf-agent/vpp1/"
	// Has the name of the source as an attribute.
	Log *slog.Logger
	// Load reads the configuration file into a struct with yaml tags that holds the
	// defaults, and reports whether the file exists.
	Load func(into any) (found bool, err error)
	// Bounds are those of the store's content.
	Bounds kvdbsync.Bounds
	// Models are the models that the agent knows.
	Models *models.Registry

	files  files          // configuration files
	memory *budget.Budget // of all stores, for texts that are parsed
}

// openBolt returns nil without a configuration file, as the other openers do.
func openBolt(o StoreOptions) (kvdbsync.Connector, error) {
	var cfg bolt.Config
	if found, err := o.Load(&cfg); !found || err != nil {
		return nil, err
	}
	cfg.Bounds = o.Bounds
	return bolt.New(cfg)
}

// openFiledb returns a connector for the files of filedb.conf, or nil without that file.
func openFiledb(o StoreOptions) (kvdbsync.Connector, error) {
	var cfg filedb.Config
	if found, err := o.Load(&cfg); !found || err != nil {
		return nil, err
	}
	cfg.Memory, cfg.Models = o.memory, o.Models
	return filedb.New(cfg, o.Root, o.Log)
}

// openEtcd returns a connector for the servers of etcd.conf, or nil without that file. The
// agent starts even if none of them answers.
func openEtcd(o StoreOptions) (kvdbsync.Connector, error) {
	var cfg etcd.Config
	if found, err := o.Load(&cfg); !found || err != nil {
		return nil, err
	}
	cfg.Bounds = o.Bounds
	return etcdStore{etcd.New(cfg, o.Log)}, nil
}

// openConsul also makes a client for writing; both read the same configuration.
func openConsul(o StoreOptions) (kvdbsync.Connector, error) {
	var cfg consul.Config
	if found, err := o.Load(&cfg); !found || err != nil {
		return nil, err
	}
	cfg.Bounds = o.Bounds
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	client, err := consul.Dial(cfg)
	if err != nil {
		return nil, err
	}
	return consulStore{consul.New(cfg, o.Log), client}, nil
}

// A consulStore is watched, published to, and edited with agentctl.
type consulStore struct {
	*consul.Connector
	*consul.Client
}

// openInitfile uses its defaults if it has no configuration, unlike the others.
func openInitfile(o StoreOptions) (kvdbsync.Connector, error) {
	cfg := initfile.Defaults()
	found, err := o.Load(&cfg)
	if err != nil {
		return nil, err
	}
	path, exists, err := o.files.find(cfg.Path)
	switch {
	case err != nil:
		return nil, err
	case exists:
		cfg.Path = path
	case filepath.Base(cfg.Path) == cfg.Path: // a file of somebody else may have this name in the current directory
		cfg.Path = filepath.Join(o.files.dir, cfg.Path)
	}
	cfg.Models = o.Models
	file, err := initfile.New(cfg, o.Root)
	if errors.Is(err, initfile.ErrNone) {
		if found {
			o.Log.Info("no initial file; no values are declared at the start", "why", err)
		}
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	for _, w := range file.Warnings {
		o.Log.Warn("accepted an invalid part of a file", "warning", w)
	}
	return file, nil
}

// openRedis also makes a client for writing, and directs the library's log into ours.
func openRedis(o StoreOptions) (kvdbsync.Connector, error) {
	var cfg redis.Config
	if found, err := o.Load(&cfg); !found || err != nil {
		return nil, err
	}
	cfg.Bounds = o.Bounds
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	redis.LogTo(o.Log)
	client, err := redis.Dial(context.Background(), cfg)
	if err != nil {
		return nil, err
	}
	return redisStore{redis.New(cfg, o.Log), client}, nil
}

// A redisStore is watched, published to, and edited with agentctl.
type redisStore struct {
	*redis.Connector
	*redis.Client
}

// A store is a configured store.
type store struct {
	name      string
	log       *slog.Logger
	connector kvdbsync.Connector
	// That of orchestrator.conf, or else of the kind. The highest valid value of a key wins.
	priority int

	source *kvdbsync.Source // set by watch
	listed *wake.Group      // set by watch: the store was listed anew
	keeper *owner.Keeper    // set by watch; nil: the store has no leases
	// Set by watch: nothing is published while another agent has the label. nil: the store does not support it.
	publisher kvdbsync.Publisher
}

// stores are the configured stores, in the order of storeKinds. The caller closes them with
// Close, after their tasks have ended.
type stores []store

// errNoStore reports that nothing can declare a network.
var errNoStore = errors.New("no store to read the network from, and no northbound that declares one")

// openStores opens each configured store. It connects to none of them, so that the agent
// starts even if some are down.
func openStores(s *settings, f files, oc orchestratorConfig, bounds kvdbsync.Bounds, all *models.Registry, memory *budget.Budget, loggers *logs.Table) (stores, error) {
	var out stores
	root := s.root()
	for _, kind := range s.storeKinds() {
		if kind.file == disabled {
			continue
		}
		log := loggers.Logger(kind.name)
		connector, err := kind.open(StoreOptions{Root: root, Bounds: bounds, Models: all, memory: memory, Log: log.With("source", kind.name), files: f, Load: func(into any) (bool, error) {
			return f.load(kind.flag, kind.file, into)
		}})
		if err != nil {
			return out, fmt.Errorf("%w: %s: %w", errConfig, kind.name, err)
		}
		if connector == nil {
			continue
		}
		out = append(out, store{name: kind.name, log: log, connector: connector, priority: oc.priority(kind)})
	}
	return out, nil
}

// countStores returns the number of stores whose configuration file exists, and at least 1.
func (s *settings) countStores(f files) (n int) {
	for _, kind := range s.storeKinds() {
		if _, found, _ := f.find(kind.file); found && kind.file != disabled {
			n++
		}
	}
	return max(n, 1)
}

// needDeclarer returns an error if nothing can declare a network: no store is configured, and
// either a flag names the file of one, or the agent has no northbound that declares.
func (s *settings) needDeclarer(configured stores, log *slog.Logger) error {
	if len(configured) > 0 {
		return nil
	}
	if s.asksForStore() || s.options.lacks(HTTP) && s.options.lacks(GRPC) && len(s.options.Northbounds) == 0 {
		return noStore(s)
	}
	log.Warn("no store is configured; only clients declare values", "config_dir", s.ConfigDir)
	return nil
}

// asksForStore reports that a flag names the file of a store. If none of them exists, an
// agent without stores is not the intention.
func (s *settings) asksForStore() bool {
	for _, kind := range s.storeKinds() {
		if s.Given[kind.flag] && kind.file != "" && kind.file != disabled {
			return true
		}
	}
	return false
}

// watch creates the source of each store, with the options given but for Name,
// Connector and Log, and the keeper of its lease if it supports leases.
func (s stores) watch(self owner.Holder, options kvdbsync.Options) {
	for i := range s {
		one, options := &s[i], options
		one.publisher, _ = one.connector.(kvdbsync.Publisher)
		if leaser, ok := one.connector.(kvdbsync.Leaser); ok {
			one.keeper = owner.NewKeeper(owner.Options{
				Store: one.name, Leaser: leaser, Key: owner.Key(options.Root), Self: self,
				Get: one.get, Turned: func() { one.source.Recheck() }, Lost: func() { one.source.Relist() }, Log: one.log,
			})
			options.Withhold = one.keeper.Withhold
			if one.publisher != nil {
				one.publisher = one.keeper.Publishing(one.publisher)
			}
		}
		one.listed = &wake.Group{}
		options.Name, options.Connector, options.Listed, options.Log = one.name, one.connector, one.listed.Set, one.log
		options.Browser, _ = one.connector.(kvdbsync.Browser)
		one.source = kvdbsync.NewSource(options)
	}
}

// get reads a key of a store that programs can read.
func (s *store) get(ctx context.Context, key string) ([]byte, error) {
	if editable, ok := s.connector.(kvdbsync.Store); ok {
		return editable.Get(ctx, key)
	}
	return nil, errors.ErrUnsupported
}

// published returns the folders and keys of a label that agents write themselves, below its
// root. Nobody is warned that they are not read.
func published() []string {
	return []string{"config-status/", "check/status/", "vpp/status/", "status/", owner.Key("")}
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

// byName returns the connectors of the stores.
func (s stores) byName() map[string]kvdbsync.Connector {
	out := map[string]kvdbsync.Connector{}
	for _, one := range s {
		out[one.name] = one.connector
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
func (s stores) tasks() (out []Task) {
	for _, one := range s {
		out = append(out, Task{"source " + one.name, one.source.Run})
		if c, ok := one.connector.(interface{ AutoCompact(context.Context) error }); ok {
			out = append(out, Task{"compaction of " + one.name, c.AutoCompact})
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

// byPriority returns the names of the editable stores, the highest priority first.
func (s stores) byPriority() []string {
	editable := s.editable()
	sorted := slices.DeleteFunc(slices.Clone(s), func(one store) bool { return editable[one.name] == nil })
	slices.SortStableFunc(sorted, func(a, b store) int {
		return cmp.Or(cmp.Compare(b.priority, a.priority), strings.Compare(a.name, b.name))
	})
	return sorted.names()
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

// ofFiles returns the stores that consist of files, by name.
func (s stores) ofFiles() map[string]rest.FileStore {
	out := map[string]rest.FileStore{}
	for _, one := range s {
		if files, ok := one.connector.(rest.FileStore); ok {
			out[one.name] = files
		}
	}
	return out
}
