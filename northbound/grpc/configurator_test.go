package grpc_test

import (
	"context"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	rpc "google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/keyplane/keyplane/proto/ligato/configurator"
	"github.com/keyplane/keyplane/proto/ligato/generic"
	"github.com/keyplane/keyplane/proto/ligato/linux"
	"github.com/keyplane/keyplane/proto/ligato/linux/interfaces"
	"github.com/keyplane/keyplane/proto/ligato/linux/l3"
	"github.com/keyplane/keyplane/proto/ligato/vpp"
	"github.com/keyplane/keyplane/proto/ligato/vpp/ipsec"
)

func linuxConfig(ifs []*interfaces.Interface, routes ...*l3.Route) *configurator.Config {
	return &configurator.Config{LinuxConfig: &linux.ConfigData{Interfaces: ifs, Routes: routes}}
}

func TestConfigurator(t *testing.T) {
	w := newWorld(t, nil)
	client := configurator.NewConfiguratorServiceClient(w.dial(t))
	var header metadata.MD
	steps := []struct {
		what   string
		do     func(ctx context.Context) error
		err    string
		stands string
	}{
		{"update", func(ctx context.Context) error {
			_, err := client.Update(ctx, &configurator.UpdateRequest{Update: linuxConfig([]*interfaces.Interface{iface("if1")}, route("10.1.0.0/16", "if1"))}, rpc.Header(&header))
			if len(header.Get("seqnum")) != 1 {
				t.Errorf("header %v", header)
			}
			return err
		}, "", "10.1.0.0/16/if1 if1"},
		{"update of nothing", func(ctx context.Context) error {
			_, err := client.Update(ctx, &configurator.UpdateRequest{})
			return err
		}, "", "10.1.0.0/16/if1 if1"},
		{"malformed", func(ctx context.Context) error {
			_, err := client.Update(ctx, &configurator.UpdateRequest{Update: linuxConfig([]*interfaces.Interface{iface("if2"), iface("")}, route("10.1.0.0", "if1"))})
			return err
		}, "InvalidArgument: nothing was changed, because the request is malformed: update.linux_config.interfaces[1]: name is required; " +
			`update.linux_config.routes[0]: dst_network is "10.1.0.0"; expected a network with prefix length, such as "10.0.0.0/24"` +
			" | update.linux_config.interfaces[1] | update.linux_config.routes[0]", "10.1.0.0/16/if1 if1"},
		{"invalid", func(ctx context.Context) error {
			_, err := client.Update(ctx, &configurator.UpdateRequest{Update: linuxConfig([]*interfaces.Interface{{Name: "if2", Mtu: 10000}})})
			return err
		}, "FailedPrecondition: KeyErrors: [" + ifPrefix + "if2 (VALIDATE): invalid value: mtu is 10000; expected at most 9216] | if2 INVALID VALIDATE [mtu]", "10.1.0.0/16/if1 if1"},
		{"delete", func(ctx context.Context) error {
			_, err := client.Delete(ctx, &configurator.DeleteRequest{Delete: linuxConfig([]*interfaces.Interface{{Name: "if2"}}, route("10.1.0.0/16", "if1")), WaitDone: true})
			return err
		}, "", "if1"},
		{"full resync", func(ctx context.Context) error {
			_, err := client.Update(ctx, &configurator.UpdateRequest{FullResync: true, WaitDone: true, Update: &configurator.Config{
				VppConfig: &vpp.ConfigData{IpsecSas: []*ipsec.SecurityAssociation{{Index: 1, CryptoKey: "abc"}}},
			}})
			return err
		}, "", "config/vpp/ipsec/v2/sa/1"},
		{"wait for what stays pending", func(ctx context.Context) error {
			return whileWaiting(ctx, func(ctx context.Context) error {
				_, err := client.Update(ctx, &configurator.UpdateRequest{WaitDone: true, Update: linuxConfig(nil, route("10.2.0.0/16", "if2"))})
				return err
			})
		}, "DeadlineExceeded: context deadline exceeded while waiting: " + routePrefix + "10.2.0.0/16/if2 is PENDING: it waits for outgoing-interface-is-up | " +
			routePrefix + "10.2.0.0/16/if2 PENDING UNDEFINED [outgoing-interface-is-up]", "config/vpp/ipsec/v2/sa/1"},
	}
	for _, s := range steps {
		if got := explain(s.do(t.Context())); got != s.err {
			t.Errorf("%s: error\n%s, want\n%s", s.what, got, s.err)
		}
		if got := w.names(); got != s.stands {
			t.Errorf("%s: stands %q, want %q", s.what, got, s.stands)
		}
	}
	got, err := client.Get(t.Context(), &configurator.GetRequest{})
	if err != nil || len(got.Config.LinuxConfig.Routes) != 1 || len(got.Config.VppConfig.IpsecSas) != 1 ||
		got.Config.VppConfig.IpsecSas[0].CryptoKey != "(secret)" || got.Config.NetallocConfig == nil {
		t.Errorf("%v, %v", got, err)
	}
	dump, err := client.Dump(t.Context(), &configurator.DumpRequest{})
	if err != nil || len(dump.Dump.LinuxConfig.Routes) != 0 || len(dump.Dump.VppConfig.IpsecSas) != 1 {
		t.Errorf("%v, %v", dump, err)
	}
}

// One dump runs at a time, also if the system does not answer it.
func TestDumpsTakeTurns(t *testing.T) {
	w := newWorld(t, nil)
	client := configurator.NewConfiguratorServiceClient(w.dial(t))
	var reads atomic.Int32
	reading, answered := make(chan struct{}, 10), make(chan struct{})
	w.beforeRead = func() {
		reads.Add(1)
		reading <- struct{}{}
		<-answered
	}
	first := make(chan error, 1)
	go func() {
		_, err := client.Dump(context.Background(), &configurator.DumpRequest{})
		first <- err
	}()
	<-reading
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	if _, err := client.Dump(ctx, &configurator.DumpRequest{}); status.Code(err) != codes.DeadlineExceeded || reads.Load() != 1 {
		t.Errorf("a second dump gives %v; the system was asked %d times, want once", err, reads.Load())
	}
	close(answered)
	if err := <-first; err != nil {
		t.Error(err)
	}
}

// A client that sends back an answer without its secrets would replace them by the text that
// stands for them, so it is refused by both services; it may still delete such values.
func TestSecretsAreNotReplacedByTheirText(t *testing.T) {
	w := newWorld(t, nil)
	conn := w.dial(t)
	client, manager := configurator.NewConfiguratorServiceClient(conn), generic.NewManagerServiceClient(conn)
	sa := &ipsec.SecurityAssociation{Index: 1, CryptoKey: "abc", IntegKey: "def"}
	if _, err := manager.SetConfig(t.Context(), &generic.SetConfigRequest{Updates: put(sa)}); err != nil {
		t.Fatal(err)
	}
	read, err := client.Get(t.Context(), &configurator.GetRequest{})
	if err != nil {
		t.Fatal(err)
	}
	read.Config.VppConfig.IpsecSas[0].IntegKey = "new"
	const text = `crypto_key is "(secret)"; expected the secret itself; this text replaces secrets in answers`
	_, err = client.Update(t.Context(), &configurator.UpdateRequest{Update: read.Config, FullResync: true})
	const at = "update.vpp_config.ipsec_sas[0]"
	if want := "InvalidArgument: nothing was changed, because the request is malformed: " + at + ": " + text + " | " + at; explain(err) != want {
		t.Errorf("%s\nwant\n%s", explain(err), want)
	}
	items, err := manager.GetConfig(t.Context(), &generic.GetConfigRequest{})
	if err != nil || len(items.Items) != 1 {
		t.Fatal(items, err)
	}
	_, err = manager.SetConfig(t.Context(), &generic.SetConfigRequest{Updates: []*generic.UpdateItem{{Item: items.Items[0].Item}}})
	if got := explain(err); !strings.HasPrefix(got, "InvalidArgument: ") || !strings.Contains(got, "updates[0].item: "+text) {
		t.Error(got)
	}
	if got := w.standing()["config/vpp/ipsec/v2/sa/1"]; !proto.Equal(got, sa) {
		t.Errorf("stands %v", got)
	}
	if _, err = client.Delete(t.Context(), &configurator.DeleteRequest{Delete: read.Config}); err != nil || w.names() != "" {
		t.Errorf("stands %q, %v", w.names(), err)
	}
}
