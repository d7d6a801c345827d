package kvdbsync_test

import (
	"context"
	"fmt"

	"github.com/keyplane/keyplane/kvdbsync"
	"github.com/keyplane/keyplane/kvdbsync/conformance"
)

// A consumer waits for Ready and takes what there is. A store that is not in
// memory comes from one of the connectors.
func ExampleSource() {
	var store conformance.Memory
	store.Txn(put("/vnf-agent/vpp1/config/route/a", "via 10.0.0.1"))

	ctx, cancel := context.WithCancel(context.Background())
	source := kvdbsync.NewSource(kvdbsync.Options{
		Name: "mem", Connector: &store, Root: "/vnf-agent/vpp1/", Prefix: "config/",
	})
	done := make(chan error)
	go func() { done <- source.Run(ctx) }()

	show := func() {
		for {
			<-source.Ready()
			change, ok := source.Take()
			if !ok {
				continue
			}
			for _, e := range change.Events {
				fmt.Printf("%s = %q\n", e.Key, e.Value)
			}
			return
		}
	}
	show()
	store.Txn(
		put("/vnf-agent/vpp1/config/route/b", "via 10.0.0.2"),
		kvdbsync.Event{Key: "/vnf-agent/vpp1/config/route/a"},
	)
	show()
	cancel()
	fmt.Println(<-done)
	// Output:
	// config/route/a = "via 10.0.0.1"
	// config/route/b = "via 10.0.0.2"
	// config/route/a = ""
	// <nil>
}
