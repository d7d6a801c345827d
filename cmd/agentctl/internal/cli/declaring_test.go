package cli_test

import (
	"context"
	"errors"
	"log/slog"
	"net"

	"github.com/rogpeppe/go-internal/testscript"
	"google.golang.org/protobuf/proto"

	"github.com/keyplane/keyplane/connectors/bolt"
	etcdstore "github.com/keyplane/keyplane/connectors/etcd"
	"github.com/keyplane/keyplane/kvdbsync"
	"github.com/keyplane/keyplane/northbound/kvdb"
	"github.com/keyplane/keyplane/northbound/rest"
	"github.com/keyplane/keyplane/orchestrator"
	"github.com/keyplane/keyplane/orchestrator/trial"
	"github.com/keyplane/keyplane/scheduler"
)

// interfacePrefix begins the keys of Linux interfaces.
const interfacePrefix = "config/linux/interfaces/v2/interface/"

// putIn writes one key into an etcd.
func putIn(addr, key, value string) error {
	client, err := etcdstore.Dial(context.Background(), etcdstore.Config{Endpoints: []string{addr}})
	if err != nil {
		return err
	}
	return errors.Join(client.Put(context.Background(), key, []byte(value)), client.Close())
}

// declaring [SOURCE...]: runs what an agent needs to take declared values: a scheduler over a
// southbound in memory, and an orchestrator of a Bolt file and of clients. It listens at SOCKET,
// where people may see secrets, and at PORT. Each SOURCE is a store that no client reaches through
// them, with an interface of-SOURCE: the etcd at ETCD if there is one, and else a Bolt file.
func declaring(ts *testscript.TestScript, _ bool, others []string) {
	const root = "/vnf-agent/vpp1/"
	quiet := slog.New(slog.DiscardHandler)
	m := &memory{stands: map[string]proto.Message{}}
	s := scheduler.New(scheduler.Options{Log: quiet})
	ts.Check(m.register(s))
	var db *bolt.DB
	var sources []orchestrator.Source
	tasks := []func(context.Context) error{s.Run}
	for i, name := range append([]string{"bolt"}, others...) {
		if addr := ts.Getenv("ETCD"); name == "etcd" && addr != "" {
			ts.Check(putIn(addr, root+interfacePrefix+"of-etcd", `{"name":"of-etcd","type":"DUMMY"}`))
			feed := kvdbsync.NewSource(kvdbsync.Options{Name: name, Connector: etcdstore.New(etcdstore.Config{Endpoints: []string{addr}}, quiet), Root: root, Prefix: "config/", Log: quiet})
			sources = append(sources, orchestrator.Source{Name: name, Priority: 30 - i, Feed: feed})
			tasks = append(tasks, feed.Run)
			continue
		}
		store, err := bolt.New(bolt.Config{Path: ts.MkAbs(name + "-keys.db")})
		ts.Check(err)
		ts.Defer(func() { ts.Check(store.Close()) })
		if i == 0 {
			db = store
		} else {
			ts.Check(store.Put(context.Background(), root+interfacePrefix+"of-"+name, []byte(`{"name":"of-`+name+`","type":"DUMMY"}`)))
		}
		feed := kvdbsync.NewSource(kvdbsync.Options{Name: name, Connector: store, Root: root, Prefix: "config/", Log: quiet})
		sources = append(sources, orchestrator.Source{Name: name, Priority: 30 - i, Feed: feed})
		tasks = append(tasks, feed.Run)
	}
	orch := orchestrator.New(s, orchestrator.Options{Sources: sources, Log: quiet})
	trials := trial.New(trial.Options{Log: quiet})
	trials.Serve(orch)
	options := rest.Options{Scheduler: s, Sources: orch, Declarer: trials, Trials: trials, Previewer: orch, Contents: orch, Label: "vpp1", Log: quiet}
	ready := make(chan net.Addr, 1)
	web := rest.Server{Config: rest.Config{Endpoint: "127.0.0.1:0"}, Options: options, Ready: ready}
	ts.Check(web.Config.Complete())
	tasks = append(tasks, orch.Run, trials.Run, web.Run)
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, len(tasks))
	for _, run := range tasks {
		go func() { ended <- run(ctx) }()
	}
	ts.Defer(func() {
		cancel()
		var errs []error
		for range tasks {
			errs = append(errs, <-ended)
		}
		ts.Check(errors.Join(errs...))
	})
	ts.Setenv("PORT", portOf(ts, (<-ready).String()))
	options.Secrets = true
	serve(ts, kvdb.Server{Label: "vpp1", Stores: map[string]kvdbsync.Store{"bolt": db}, Beside: rest.Handler(options)})
}
