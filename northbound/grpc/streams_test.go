package grpc_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/keyplane/keyplane/internal/testkit"
	"github.com/keyplane/keyplane/northbound/grpc"
	"github.com/keyplane/keyplane/proto/ligato/configurator"
	"github.com/keyplane/keyplane/proto/ligato/generic"
	"github.com/keyplane/keyplane/proto/ligato/linux"
	linuxif "github.com/keyplane/keyplane/proto/ligato/linux/interfaces"
	"github.com/keyplane/keyplane/proto/ligato/vpp"
	"github.com/keyplane/keyplane/proto/ligato/vpp/interfaces"
)

func linuxEvent(name string, up linuxif.InterfaceState_Status) *configurator.Notification {
	return &configurator.Notification{Notification: &configurator.Notification_LinuxNotification{LinuxNotification: &linux.Notification{
		Interface: &linuxif.InterfaceNotification{Type: linuxif.InterfaceNotification_UPDOWN, State: &linuxif.InterfaceState{Name: name, AdminStatus: up}},
	}}}
}

func vppEvent(name string) *configurator.Notification {
	return &configurator.Notification{Notification: &configurator.Notification_VppNotification{VppNotification: &vpp.Notification{
		Interface: &interfaces.InterfaceNotification{State: &interfaces.InterfaceState{Name: name}},
	}}}
}

// notifier returns a channel that gets the function that notifies the clients of w, once it runs.
func notifier(w *world) <-chan func(...*configurator.Notification) {
	adds := make(chan func(...*configurator.Notification), 1)
	w.more.Events = append(w.more.Events, func(ctx context.Context, add func(...*configurator.Notification)) {
		adds <- add
		<-ctx.Done()
	})
	return adds
}

func TestNotify(t *testing.T) {
	w := newWorld(t, nil)
	adds := notifier(w)
	client := configurator.NewConfiguratorServiceClient(w.dial(t))
	add := <-adds
	add(linuxEvent("if0", linuxif.InterfaceState_UP), vppEvent("tap0"), linuxEvent("if0", linuxif.InterfaceState_DOWN))
	listen := func(req *configurator.NotifyRequest) func() string {
		stream, err := client.Notify(t.Context(), req)
		if err != nil {
			t.Fatal(err)
		}
		return func() string {
			got, err := stream.Recv()
			if err != nil {
				t.Fatal(err)
			}
			if v := got.Notification.GetVppNotification(); v != nil {
				return fmt.Sprintf("%d %s", got.NextIdx, v.Interface.State.Name)
			}
			state := got.Notification.GetLinuxNotification().Interface.State
			return fmt.Sprintf("%d %s %s", got.NextIdx, state.Name, state.AdminStatus)
		}
	}
	expect := func(what string, next func() string, want ...string) {
		t.Helper()
		for _, text := range want {
			if got := next(); got != text {
				t.Errorf("%s: %q, want %q", what, got, text)
			}
		}
	}
	all, later := listen(&configurator.NotifyRequest{}), listen(&configurator.NotifyRequest{Idx: 2})
	filtered := listen(&configurator.NotifyRequest{Filters: []*configurator.Notification{linuxEvent("if0", linuxif.InterfaceState_DOWN), vppEvent("tap1")}})
	expect("all", all, "1 if0 UP", "2 tap0", "3 if0 DOWN")
	expect("from 2", later, "3 if0 DOWN")
	expect("filtered", filtered, "3 if0 DOWN")
	add(vppEvent("tap1"))
	expect("all", all, "4 tap1")
	expect("from 2", later, "4 tap1")
	expect("filtered", filtered, "4 tap1")
	for range 10_001 {
		add(vppEvent("more"))
	}
	expect("the oldest are dropped", listen(&configurator.NotifyRequest{}), "6 more")
	expect("a number of an earlier process", listen(&configurator.NotifyRequest{Idx: 20_000}), "6 more")
	next := listen(&configurator.NotifyRequest{Idx: 10_005})
	add(vppEvent("newest"))
	expect("the number of the next one", next, "10006 newest")
}

// TestNotifyAfterRestart has a client come back with the number that an earlier process gave it. The
// notifications of the new one are counted from 0 again.
func TestNotifyAfterRestart(t *testing.T) {
	w := newWorld(t, nil)
	adds := notifier(w)
	client := configurator.NewConfiguratorServiceClient(w.dial(t))
	ctx, cancel := context.WithTimeout(t.Context(), testkit.Patience)
	defer cancel()
	stream, err := client.Notify(ctx, &configurator.NotifyRequest{Idx: 5000})
	if err != nil {
		t.Fatal(err)
	}
	(<-adds)(vppEvent("tap0"))
	if got, err := stream.Recv(); err != nil || got.NextIdx != 1 {
		t.Errorf("next_idx is %d, %v; expected 1", got.GetNextIdx(), err)
	}
}

func TestPollStats(t *testing.T) {
	w := newWorld(t, nil)
	broken := errors.New("no stats segment")
	var fail bool
	w.more.Counters = func(context.Context) ([]*interfaces.InterfaceStats, error) {
		if fail {
			return nil, broken
		}
		return []*interfaces.InterfaceStats{{Name: "tap0", RxError: 7}, {Name: "tap1"}}, nil
	}
	client := configurator.NewStatsPollerServiceClient(w.dial(t))
	poll := func(req *configurator.PollStatsRequest) (out string) {
		stream, err := client.PollStats(t.Context(), req)
		for err == nil {
			var got *configurator.PollStatsResponse
			if got, err = stream.Recv(); err == nil {
				one := got.Stats.GetVppStats().Interface
				out += fmt.Sprintf("%d %s %d, ", got.PollSeq, one.Name, one.RxError)
			}
		}
		if errors.Is(err, io.EOF) {
			return out + "end"
		}
		return out + explain(err)
	}
	for _, c := range []struct {
		req  *configurator.PollStatsRequest
		want string
	}{
		{&configurator.PollStatsRequest{}, "0 tap0 7, 0 tap1 0, end"},
		{&configurator.PollStatsRequest{NumPolls: 1}, "0 tap0 7, 0 tap1 0, end"},
		{&configurator.PollStatsRequest{PeriodSec: 1, NumPolls: 2}, "1 tap0 7, 1 tap1 0, 2 tap0 7, 2 tap1 0, end"},
		{&configurator.PollStatsRequest{NumPolls: 2}, "InvalidArgument: num_polls is 2, but period_sec is 0; expected a period, or one poll"},
	} {
		if got := poll(c.req); got != c.want {
			t.Errorf("%v: %q, want %q", c.req, got, c.want)
		}
	}
	fail = true
	if got := poll(&configurator.PollStatsRequest{}); got != "Unavailable: counters of VPP: no stats segment" {
		t.Error(got)
	}
	none := configurator.NewStatsPollerServiceClient(newWorld(t, nil).dial(t))
	stream, err := none.PollStats(t.Context(), &configurator.PollStatsRequest{})
	if err == nil {
		_, err = stream.Recv()
	}
	if status.Code(err) != codes.Unavailable {
		t.Errorf("without counters: %v", err)
	}
}

func TestCallsAreCounted(t *testing.T) {
	w := newWorld(t, nil)
	registry := prometheus.NewRegistry()
	w.more.Metrics = registry
	addr := w.serve(t, grpc.Config{Endpoint: "127.0.0.1:0", PrometheusMetrics: true})
	if _, err := generic.NewMetaServiceClient(plain(t, addr)).KnownModels(t.Context(), &generic.KnownModelsRequest{}); err != nil {
		t.Fatal(err)
	}
	found := map[string]bool{}
	families, err := registry.Gather()
	for _, f := range families {
		found[f.GetName()] = true
	}
	for _, name := range []string{"grpc_server_started_total", "grpc_server_handled_total", "grpc_server_msg_received_total", "grpc_server_msg_sent_total", "grpc_server_handling_seconds"} {
		if !found[name] || err != nil {
			t.Errorf("%s is missing: %v", name, err)
		}
	}
}
