package siege

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.fd.io/govpp/binapi/ip"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"

	"github.com/keyplane/keyplane/descriptors/vpp/conn"
	"github.com/keyplane/keyplane/internal/testkit"
	"github.com/keyplane/keyplane/models"
	"github.com/keyplane/keyplane/proto/ligato/vpp/interfaces"
	"github.com/keyplane/keyplane/proto/ligato/vpp/l3"
)

const (
	soakLoops = 10                     // loopbacks; all other keys are routes over them
	soakPace  = 100 * time.Millisecond // from one edit to the next
	soakTxn   = 100                    // most keys of a transaction
	soakLook  = 3 * time.Second        // from one comparison to the next
)

// A soakNetwork is what the store declares: loopbacks and routes, of which each has a
// preference or is absent.
type soakNetwork struct {
	root   string
	client *clientv3.Client
	socket string // of VPP

	editing sync.Mutex // guards what follows; who holds it stops the edits
	random  *rand.Rand
	wanted  []uint32 // preference by number of the route; 0: it is not declared
	edits   int

	compared int // of the goroutine that harms
}

// newSoakNetwork declares all keys.
func newSoakNetwork(t *testing.T, store *testkit.Etcd, label, socket string) *soakNetwork {
	t.Helper()
	client, err := clientv3.New(clientv3.Config{Endpoints: []string{store.Endpoint}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { client.Close() })
	n := &soakNetwork{root: rootOf(label), client: client, socket: socket, random: rand.New(rand.NewPCG(2, 0)), wanted: make([]uint32, *opts.soakKeys-soakLoops)}
	var ops []clientv3.Op
	for i := range soakLoops {
		ops = append(ops, n.put(&interfaces.Interface{
			Name: soakLoop(i), Type: interfaces.Interface_SOFTWARE_LOOPBACK, Enabled: true, IpAddresses: []string{fmt.Sprintf("10.0.%d.1/24", i)},
		}))
	}
	for i := range n.wanted {
		n.wanted[i] = 1
		ops = append(ops, n.put(n.route(i)))
	}
	for some := range slices.Chunk(ops, soakTxn) {
		if _, err := client.Txn(t.Context()).Then(some...).Commit(); err != nil {
			t.Fatal(err)
		}
	}
	return n
}

func soakLoop(i int) string { return fmt.Sprintf("loop%d", i) }

// soakPrefix is the destination of a route.
func soakPrefix(i int) string { return fmt.Sprintf("11.%d.%d.%d/32", i>>16, i>>8&255, i&255) }

// route is the i-th route as it is wanted.
func (n *soakNetwork) route(i int) *l3.Route {
	via := i % soakLoops
	return &l3.Route{
		DstNetwork: soakPrefix(i), NextHopAddr: fmt.Sprintf("10.0.%d.2", via), OutgoingInterface: soakLoop(via), Preference: n.wanted[i],
	}
}

// put writes a value into the store.
func (n *soakNetwork) put(v proto.Message) clientv3.Op {
	text, err := protojson.MarshalOptions{UseProtoNames: true}.Marshal(v)
	if err != nil {
		panic(err) // a message that this file has made
	}
	return clientv3.OpPut(n.key(v), string(text))
}

// key is the whole key of a value.
func (n *soakNetwork) key(v proto.Message) string {
	var key string
	var err error
	switch v := v.(type) {
	case *l3.Route:
		key, err = models.For[*l3.Route]().Key(v)
	case *interfaces.Interface:
		key, err = models.For[*interfaces.Interface]().Key(v)
	}
	if err != nil || key == "" {
		panic(fmt.Sprint("no key: ", v, err)) // a message that this file has made
	}
	return n.root + key
}

// edit changes, removes and returns random routes until ctx ends, some in one transaction.
func (n *soakNetwork) edit(ctx context.Context) error {
	tick := time.NewTicker(soakPace)
	defer tick.Stop()
	for ctx.Err() == nil {
		<-tick.C
		if err := n.editOnce(ctx); err != nil {
			return err
		}
	}
	return nil
}

// editOnce changes up to ten routes in one transaction. A change that was begun is made: what
// is declared must be known.
func (n *soakNetwork) editOnce(ctx context.Context) error {
	n.editing.Lock()
	defer n.editing.Unlock()
	chosen := map[int]bool{}
	for range 1 + n.random.IntN(10) {
		chosen[n.random.IntN(len(n.wanted))] = true
	}
	var ops []clientv3.Op
	for i := range chosen {
		was := n.wanted[i]
		switch {
		case was > 0 && n.random.IntN(4) == 0:
			ops = append(ops, clientv3.OpDelete(n.key(n.route(i))))
			n.wanted[i] = 0
		default: // one that is absent comes back
			n.wanted[i] = was%9 + 1
			ops = append(ops, n.put(n.route(i)))
		}
	}
	n.edits += len(ops)
	if _, err := n.client.Txn(context.WithoutCancel(ctx)).Then(ops...).Commit(); err != nil {
		return fmt.Errorf("editing the store: %w", err)
	}
	return nil
}

// settles returns when VPP has exactly the routes that are declared. The caller stops the
// edits. The error of an ended ctx tells what differed last. VPP does nothing else while it
// lists its routes, so it gets a pause after each comparison: otherwise it seems to hang.
func (n *soakNetwork) settles(ctx context.Context) error {
	var last error
	for {
		err := n.differs(ctx)
		if err == nil {
			n.compared++
			return nil
		}
		if ctx.Err() == nil || last == nil { // a comparison that ctx broke off tells nothing
			last = err
		}
		if ctx.Err() != nil {
			return last
		}
		pause(ctx, soakLook)
	}
}

// differs returns an error that names a route which VPP has otherwise than it is declared.
func (n *soakNetwork) differs(ctx context.Context) error {
	has, err := n.routesOfVPP(ctx)
	if err != nil {
		return err
	}
	count, first := 0, ""
	for i, want := range n.wanted {
		if got := has[soakPrefix(i)]; got != want {
			count++
			first = fmt.Sprintf("%s has the preference %d, declared is %d (0: absent)", soakPrefix(i), got, want)
		}
		delete(has, soakPrefix(i))
	}
	for prefix := range has {
		count++
		first = prefix + " is in VPP, and was never declared"
	}
	if count > 0 {
		return fmt.Errorf("%d of %d routes differ, such as: %s", count, len(n.wanted), first)
	}
	return nil
}

// routesOfVPP returns the preference of each route that the API has made, by prefix.
func (n *soakNetwork) routesOfVPP(ctx context.Context) (map[string]uint32, error) {
	c, err := conn.Dial(ctx, n.socket, "soak")
	if err != nil {
		return nil, err
	}
	ended := make(chan struct{})
	go func() { _ = c.Run(ctx); close(ended) }() // the dump returns the reason
	defer func() { c.Close(context.Canceled); <-ended }()
	const ofAPI = 8
	all, err := conn.Dump[ip.IPRouteV2Details](ctx, c, &ip.IPRouteV2Dump{Src: ofAPI})
	out := make(map[string]uint32, len(all))
	for _, one := range all {
		if len(one.Route.Paths) != 1 {
			return nil, fmt.Errorf("%v has %d paths", one.Route.Prefix, len(one.Route.Paths))
		}
		out[one.Route.Prefix.String()] = uint32(one.Route.Paths[0].Preference)
	}
	return out, err
}
