package grpc_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"net/http"
	"runtime"
	"strings"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/keyplane/keyplane/internal/budget"
	"github.com/keyplane/keyplane/northbound/grpc"
	"github.com/keyplane/keyplane/proto/ligato/configurator"
	"github.com/keyplane/keyplane/proto/ligato/generic"
	"github.com/keyplane/keyplane/proto/ligato/linux/interfaces"
	"github.com/keyplane/keyplane/proto/ligato/vpp/acl"
	"github.com/keyplane/keyplane/proto/ligato/vpp/ipsec"
)

// until waits for a condition that other goroutines fulfil.
func until(is func() bool) {
	for !is() {
		runtime.Gosched()
	}
}

// refused checks that a call was refused because of a bound.
func refused(t *testing.T, what string, err error, text string) {
	t.Helper()
	if status.Code(err) != codes.ResourceExhausted || !strings.Contains(err.Error(), text) {
		t.Errorf("%s: %v; want %s", what, err, text)
	}
}

// TestDenseRequests sends requests that are small on the wire and large in memory. They are refused before they
// are decoded; a request of as many bytes with few values is served.
func TestDenseRequests(t *testing.T) {
	w := newWorld(t, nil)
	client := generic.NewManagerServiceClient(w.dial(t))
	const size = 3 << 20
	list := &acl.ACL{Name: "acl1", Rules: make([]*acl.ACL_Rule, size/2)}
	for i := range list.Rules {
		list.Rules[i] = &acl.ACL_Rule{}
	}
	empty := make([]*generic.UpdateItem, size/2)
	for i := range empty {
		empty[i] = &generic.UpdateItem{}
	}
	for what, updates := range map[string][]*generic.UpdateItem{"empty values": empty, "a value of empty rules": put(list)} {
		_, err := client.SetConfig(t.Context(), &generic.SetConfigRequest{Updates: updates})
		refused(t, what, err, "the request needs more memory than 65536 KB, 16 times max-msg-size in grpc.conf: split it")
	}
	set(t, client, put(&interfaces.Interface{Name: "if1", HostIfName: strings.Repeat("x", size)})...)
	many := make([]proto.Message, 30_000)
	for i := range many {
		many[i] = iface(fmt.Sprintf("if%d", i))
	}
	set(t, client, put(many...)...)
	if _, err := client.GetConfig(with(t.Context(), "x="+strings.Repeat("x", 20_000)), &generic.GetConfigRequest{}); status.Code(err) == codes.OK {
		t.Error("metadata of 20 kB was accepted")
	}
}

// TestLargeQueries sends requests without values, which have no need to be large.
func TestLargeQueries(t *testing.T) {
	w := newWorld(t, nil)
	conn := w.dial(t)
	ids := make([]*generic.Item_ID, 30_000)
	for i := range ids {
		ids[i] = &generic.Item_ID{Model: "linux.interfaces.interface", Name: fmt.Sprintf("if%d", i)}
	}
	large := strings.Repeat("x", 1<<20)
	_, err := generic.NewManagerServiceClient(conn).GetConfig(t.Context(), &generic.GetConfigRequest{Ids: ids})
	refused(t, "ids", err, "the maximum of /ligato.generic.ManagerService/GetConfig is 1048576")
	_, err = generic.NewMetaServiceClient(conn).KnownModels(t.Context(), &generic.KnownModelsRequest{Class: large})
	refused(t, "a class", err, "the maximum of /ligato.generic.MetaService/KnownModels is 1048576")
}

// TestRequestsWaitForMemory sends a request while others have the memory. It waits, and its memory is free
// again while it waits for values.
func TestRequestsWaitForMemory(t *testing.T) {
	w := newWorld(t, nil)
	memory := budget.New(1 << 20)
	w.more.Memory = memory
	client := generic.NewManagerServiceClient(w.dial(t))
	leave, err := memory.Enter(t.Context(), 1<<20)
	if err != nil {
		t.Fatal(err)
	}
	answered := make(chan error, 1)
	long := put(&interfaces.Interface{Name: "if1", HostIfName: strings.Repeat("x", 300_000)}, route("10.1.0.0/16", "if2"))
	go func() {
		_, err := client.SetConfig(with(t.Context(), "wait-done=true"), &generic.SetConfigRequest{Updates: long})
		answered <- err
	}()
	until(func() bool { _, waiting := memory.Inside(); return waiting == 1 })
	if got := w.names(); got != "" {
		t.Errorf("%s stands before there was memory for it", got)
	}
	leave()
	w.eventually(t, "the request is served", func() bool { return w.names() == "if1" })
	until(func() bool { inside, _ := memory.Inside(); return inside == 0 }) // while the route is pending
	set(t, client, put(iface("if2"))...)
	if err := <-answered; err != nil {
		t.Error(err)
	}
}

// TestCallsInProgress has as many calls as are served at once.
func TestCallsInProgress(t *testing.T) {
	w := newWorld(t, nil)
	addr := w.serve(t, grpc.Config{Endpoint: "127.0.0.1:0"})
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	ended := make(chan error)
	lines := []generic.ManagerServiceClient{generic.NewManagerServiceClient(plain(t, addr)), generic.NewManagerServiceClient(plain(t, addr))}
	for i := range 128 {
		go func() {
			_, err := lines[i%2].SetConfig(with(ctx, fmt.Sprintf("wait-done=true datasrc=d%d", i%8)), &generic.SetConfigRequest{Updates: put(route(fmt.Sprintf("10.1.%d.0/24", i), "if1"))})
			ended <- err
		}()
	}
	w.eventually(t, "all routes are pending", func() bool { return len(w.sched.Statuses(routePrefix)) == 128 })
	_, err := lines[0].GetConfig(t.Context(), &generic.GetConfigRequest{})
	refused(t, "one more", err, "128 calls are in progress, which is the maximum; try again later")
	cancel()
	for range 128 {
		<-ended
	}
	until(func() bool { _, err := lines[0].GetConfig(t.Context(), &generic.GetConfigRequest{}); return err == nil })
}

// TestStreamsAreBounded has as many streams as one method may have, and requests of streams that are too large.
func TestStreamsAreBounded(t *testing.T) {
	w := newWorld(t, nil)
	conn := w.dial(t)
	client, config := generic.NewManagerServiceClient(conn), configurator.NewConfiguratorServiceClient(conn)
	for range 16 {
		follow(t, client, "resume=").want("resume")
	}
	_, err := follow(t, client, "").stream.Recv()
	refused(t, "one more", err, "16 calls of /ligato.generic.ManagerService/Subscribe are in progress, which is the maximum; try again later")

	notify := func(filters int) error {
		req := &configurator.NotifyRequest{}
		for range filters {
			req.Filters = append(req.Filters, &configurator.Notification{})
		}
		stream, err := config.Notify(t.Context(), req)
		if err == nil {
			_, err = stream.Recv()
		}
		return err
	}
	refused(t, "filters", notify(101), "there are 101 filters; the maximum is 100")
	refused(t, "a large request", notify(50_000), "the request needs more memory than 1024 KB, the maximum of /ligato.configurator.ConfiguratorService/Notify")
}

// TestLargeValuesOfStreams subscribes to a large value while others have the memory.
func TestLargeValuesOfStreams(t *testing.T) {
	w := newWorld(t, nil)
	memory := budget.New(8 << 20)
	w.more.Memory = memory
	client := generic.NewManagerServiceClient(w.dial(t))
	set(t, client, put(&interfaces.Interface{Name: "if1", HostIfName: strings.Repeat("x", 1<<20)}, iface("if2"))...)
	until(func() bool { inside, _ := memory.Inside(); return inside == 0 })
	leave, err := memory.Enter(t.Context(), 8<<20)
	if err != nil {
		t.Fatal(err)
	}
	f := follow(t, client, "resume=")
	until(func() bool { _, waiting := memory.Inside(); return waiting == 1 })
	leave()
	seen := f.next() + f.next()
	if !strings.Contains(seen, "if1") || !strings.Contains(seen, "if2") {
		t.Errorf("seen %s", seen)
	}
	f.want("resume")
	until(func() bool { inside, _ := memory.Inside(); return inside == 0 })
}

// TestLargeSecretsOfStreams subscribes to a large value over a connection that hides its content. What is
// sent is small, and the stream goes on after it.
func TestLargeSecretsOfStreams(t *testing.T) {
	client := generic.NewManagerServiceClient(plain(t, newWorld(t, nil).serve(t, grpc.Config{Endpoint: "127.0.0.1:0"})))
	set(t, client, put(&ipsec.SecurityAssociation{Index: 1, IntegKey: strings.Repeat("x", 300_000)})...)
	f := follow(t, client, "resume=")
	f.want("1 CONFIGURED", "resume")
	set(t, client, put(iface("if1"))...)
	f.want("if1 CONFIGURED mtu 0")
}

// unreadAnswer makes a call whose client reads nothing of the answer after its header.
func unreadAnswer(t *testing.T, addr net.Addr, path string, request proto.Message) (leave func()) {
	t.Helper()
	transport := &http.Transport{Protocols: new(http.Protocols), HTTP2: &http.HTTP2Config{MaxReceiveBufferPerStream: 64 << 10}}
	transport.Protocols.SetUnencryptedHTTP2(true)
	message, err := proto.Marshal(request)
	if err != nil {
		t.Fatal(err)
	}
	body := append(binary.BigEndian.AppendUint32([]byte{0}, uint32(len(message))), message...)
	post, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://"+addr.String()+path, bytes.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	post.Header.Set("Content-Type", "application/grpc")
	answer, err := transport.RoundTrip(post)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadFull(answer.Body, make([]byte, 1)); err != nil {
		t.Fatal(err)
	}
	return func() { answer.Body.Close(); transport.CloseIdleConnections() }
}

// TestUnreadAnswersKeepMemory asks for a large answer and does not read it. It counts until its client leaves.
func TestUnreadAnswersKeepMemory(t *testing.T) {
	w := newWorld(t, nil)
	memory := budget.New(64 << 20)
	w.more.Memory = memory
	addr := w.serve(t, grpc.Config{Endpoint: "127.0.0.1:0"})
	set(t, generic.NewManagerServiceClient(plain(t, addr)), put(&interfaces.Interface{Name: "if1", HostIfName: strings.Repeat("x", 3<<20)})...)
	for path, request := range map[string]proto.Message{
		generic.ManagerService_GetConfig_FullMethodName: &generic.GetConfigRequest{}, configurator.ConfiguratorService_Get_FullMethodName: &configurator.GetRequest{},
	} {
		leave := unreadAnswer(t, addr, path, request)
		if inside, _ := memory.Inside(); inside < 9<<20 {
			t.Errorf("%s: %d bytes are counted, want three times the answer", path, inside)
		}
		leave()
		until(func() bool { inside, _ := memory.Inside(); return inside == 0 })
	}
}
