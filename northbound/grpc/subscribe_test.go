package grpc_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/keyplane/keyplane/northbound/grpc"
	"github.com/keyplane/keyplane/proto/ligato/generic"
	"github.com/keyplane/keyplane/proto/ligato/linux/interfaces"
)

// A follower is a subscription that a test reads.
type follower struct {
	t      *testing.T
	stream generic.ManagerService_SubscribeClient
	cancel context.CancelFunc
	queue  []string
	token  string // the last one that was sent
}

func follow(t *testing.T, client generic.ManagerServiceClient, meta string, ids ...*generic.Item_ID) *follower {
	t.Helper()
	req := &generic.SubscribeRequest{}
	for _, id := range ids {
		req.Subscriptions = append(req.Subscriptions, &generic.Subscription{Id: id})
	}
	ctx, cancel := context.WithCancel(with(t.Context(), meta))
	t.Cleanup(cancel)
	stream, err := client.Subscribe(ctx, req)
	if err != nil {
		t.Fatal(err)
	}
	return &follower{t: t, stream: stream, cancel: cancel}
}

// next returns the next notification: "if1 CONFIGURED mtu 0", or "resume".
func (f *follower) next() string {
	f.t.Helper()
	for len(f.queue) == 0 {
		got, err := f.stream.Recv()
		if err != nil {
			f.t.Fatal(err)
		}
		for _, n := range got.Notifications {
			if n.Item.Id.Model == "" {
				f.token = n.Status.Message
				f.queue = append(f.queue, n.Item.Id.Name)
				continue
			}
			text := strings.TrimSpace(n.Item.Id.Name + " " + n.Status.Status + " " + n.Status.Message)
			if n.Item.Data != nil && n.Item.Id.Model == ifModel {
				v := &interfaces.Interface{}
				if err := proto.Unmarshal(n.Item.Data.GetAny().Value, v); err != nil {
					f.t.Error(err)
				}
				text += fmt.Sprintf(" mtu %d", v.Mtu)
			}
			f.queue = append(f.queue, text)
		}
	}
	out := f.queue[0]
	f.queue = f.queue[1:]
	return out
}

func (f *follower) want(texts ...string) {
	f.t.Helper()
	for _, text := range texts {
		if got := f.next(); got != text {
			f.t.Errorf("got %q, want %q", got, text)
		}
	}
}

func set(t *testing.T, client generic.ManagerServiceClient, items ...*generic.UpdateItem) {
	t.Helper()
	if _, err := client.SetConfig(t.Context(), &generic.SetConfigRequest{Updates: items}); err != nil {
		t.Error(err)
	}
}

func TestSubscribe(t *testing.T) {
	w := newWorld(t, nil)
	client := generic.NewManagerServiceClient(w.dial(t))
	set(t, client, put(iface("if1"))...)
	set(t, client, put(route("10.1.0.0/16", "if2"))...)
	all := follow(t, client, "")
	some := follow(t, client, "", &generic.Item_ID{Model: ifModel, Name: "if2"}, &generic.Item_ID{Model: "linux.l3.route"})
	first := []string{all.next(), all.next()}
	if strings.Join(first, ", ") != "if1 CONFIGURED mtu 0, 10.1.0.0/16/if2 PENDING outgoing-interface-is-up" &&
		strings.Join(first, ", ") != "10.1.0.0/16/if2 PENDING outgoing-interface-is-up, if1 CONFIGURED mtu 0" {
		t.Errorf("first %q", first)
	}
	some.want("10.1.0.0/16/if2 PENDING outgoing-interface-is-up")
	set(t, client, put(&interfaces.Interface{Name: "if1", Mtu: 1400})...)
	all.want("if1 CONFIGURED mtu 1400")
	set(t, client, drop(ifModel, "if1")...)
	all.want("if1 REMOVED")
	set(t, client, put(iface("if2"))...)
	some.want("if2 CONFIGURED mtu 0", "10.1.0.0/16/if2 CONFIGURED")
	all.want("if2 CONFIGURED mtu 0", "10.1.0.0/16/if2 CONFIGURED")

	bad := follow(t, client, "", &generic.Item_ID{Model: "no.model"}, &generic.Item_ID{Model: "no.model", Name: "x"})
	if _, err := bad.stream.Recv(); status.Code(err) != codes.InvalidArgument || !strings.Contains(err.Error(), `subscriptions[0].id: id.model is "no.model"`) {
		t.Error(err)
	}
}

// An error may quote the name of a file, and Linux accepts any bytes as the name of an interface. Such a text does not
// end a call.
func TestTextsThatAreNotUTF8(t *testing.T) {
	w := newWorld(t, nil)
	client := generic.NewManagerServiceClient(w.dial(t))
	w.fail(ifPrefix+"if1", errors.New("b\xfcro.yaml"))
	_, err := client.SetConfig(t.Context(), &generic.SetConfigRequest{Updates: put(iface("if1"))})
	const want = "FailedPrecondition: KeyErrors: [" + ifPrefix + "if1 (CREATE): b\ufffdro.yaml] | if1 RETRYING CREATE []"
	if text := explain(err); text != want {
		t.Errorf("error\n%s, want\n%s", text, want)
	}
	f := follow(t, client, "")
	f.want("if1 RETRYING b\ufffdro.yaml mtu 0")
	w.appear(ifPrefix+"caf\xe9", iface("caf\xe9"))
	if err := w.sched.Refresh("interface"); err != nil {
		t.Error(err)
	}
	f.want("caf\ufffd OBTAINED mtu 0")
}

// A subscription goes on where another one ended: with what has changed since, and with what
// was removed.
func TestSubscribeAgain(t *testing.T) {
	w := newWorld(t, nil)
	conn := w.dial(t)
	client := generic.NewManagerServiceClient(conn)
	empty := follow(t, client, "resume=")
	empty.want("resume")
	set(t, client, put(iface("if1"))...)
	empty.want("if1 CONFIGURED mtu 0", "resume")
	empty.cancel()

	set(t, client, put(iface("if2"))...)
	set(t, client, put(&interfaces.Interface{Name: "if2", Mtu: 1400})...)
	set(t, client, drop(ifModel, "if1")...)
	again := follow(t, client, "resume="+empty.token)
	again.want("if2 CONFIGURED mtu 1400", "if1 REMOVED", "resume")
	if header, err := again.stream.Header(); err != nil || header.Get("resumed")[0] != "true" {
		t.Error(header, err)
	}
	again.cancel()

	nothing := follow(t, client, "resume="+again.token)
	nothing.want("resume")
	for _, unknown := range []string{"other-1", again.token + "0000", "x", again.token[:9] + "-5"} {
		f := follow(t, client, "resume="+unknown)
		f.want("if2 CONFIGURED mtu 1400", "resume")
		if header, err := f.stream.Header(); err != nil || header.Get("resumed")[0] != "false" {
			t.Errorf("%s: %v, %v", unknown, header, err)
		}
		f.cancel()
	}
}

// A token from before a removal that was dropped is unknown.
func TestSubscribeAfterManyRemovals(t *testing.T) {
	w := newWorld(t, nil)
	client := generic.NewManagerServiceClient(w.dial(t))
	begun := follow(t, client, "resume=")
	begun.want("resume")
	begun.cancel()
	var many []proto.Message
	var names []string
	for i := range 10_001 {
		names = append(names, fmt.Sprintf("if%d", i))
		many = append(many, iface(names[i]))
	}
	set(t, client, put(many...)...)
	middle := follow(t, client, "resume="+begun.token)
	for range many {
		middle.next()
	}
	middle.want("resume")
	middle.cancel()
	set(t, client, drop(ifModel, names...)...)
	late := follow(t, client, "resume="+middle.token)
	late.want("resume")
	if header, err := late.stream.Header(); err != nil || header.Get("resumed")[0] != "false" {
		t.Errorf("all values were removed: %v, %v", header, err)
	}
}

// A subscription that waits for something else does not keep removed values, and goes on. One that does not read them in
// time ends with an error.
func TestRemovalsAreNotKeptForReaders(t *testing.T) {
	w := newWorld(t, nil)
	h := grpc.NewHub(w.sched, t.Context().Done())
	quiet := h.Open(func(string) bool { return false })
	slow := h.Open(func(string) bool { return true })
	if err := errors.Join(quiet.Take(), slow.Take()); err != nil {
		t.Fatal(err)
	}
	client := generic.NewManagerServiceClient(w.dial(t))
	for round := range 2 {
		var many []proto.Message
		var names []string
		for i := range grpc.MaxGone/2 + 1 {
			names = append(names, fmt.Sprintf("if%d-%d", round, i))
			many = append(many, iface(names[i]))
		}
		set(t, client, put(many...)...)
		set(t, client, drop(ifModel, names...)...)
		if gone, all := h.Kept(); gone > grpc.MaxGone || all > grpc.MaxGone {
			t.Errorf("%d removed values are kept, and %d in all", gone, all)
		}
	}
	if err := quiet.Take(); err != nil {
		t.Errorf("a subscription that wants other values: %v", err)
	}
	if err := slow.Take(); status.Code(err) != codes.Aborted {
		t.Errorf("a reader that is behind: %v", err)
	}
}

// A client that does not read gets the newest state of each value, and the agent keeps no
// more than that for it.
func TestSlowReader(t *testing.T) {
	w := newWorld(t, nil)
	client := generic.NewManagerServiceClient(w.dial(t))
	slow := follow(t, client, "resume=")
	slow.want("resume")
	long := strings.Repeat("x", 1000)
	const names, rounds = 100, 50
	for round := range rounds {
		var vs []proto.Message
		for i := range names {
			vs = append(vs, &interfaces.Interface{Name: fmt.Sprintf("if%d", i), HostIfName: long, Mtu: uint32(round + 1)})
		}
		set(t, client, put(vs...)...)
	}
	newest, messages := map[string]string{}, 0
	for complete := 0; complete < names; {
		text := slow.next()
		if text == "resume" {
			continue
		}
		name, rest, _ := strings.Cut(text, " ")
		if newest[name] == rest {
			t.Errorf("%s came twice", text)
		}
		newest[name] = rest
		if messages++; rest == fmt.Sprintf("CONFIGURED mtu %d", rounds) {
			complete++
		}
	}
	t.Logf("%d states of %d", messages, names*rounds)
}

// A client that does not read while more values are removed than are kept is told so at the end of what it has.
func TestSlowReaderMissesRemovals(t *testing.T) {
	w := newWorld(t, nil)
	client := generic.NewManagerServiceClient(w.dial(t))
	slow := follow(t, client, "resume=")
	slow.want("resume")
	var many []proto.Message
	var names []string
	for i := range 10_001 {
		names = append(names, fmt.Sprintf("if%d", i))
		many = append(many, &interfaces.Interface{Name: names[i], HostIfName: strings.Repeat("x", 100)})
	}
	set(t, client, put(many...)...)
	set(t, client, drop(ifModel, names...)...)
	set(t, client, put(iface("last"))...)
	var err error
	for err == nil {
		_, err = slow.stream.Recv()
	}
	if status.Code(err) != codes.Aborted {
		t.Errorf("it ends with %v", err)
	}
}
