package grpc_test

import (
	"context"
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	rpc "google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"

	"github.com/keyplane/keyplane/internal/budget"
	"github.com/keyplane/keyplane/internal/testkit"
	"github.com/keyplane/keyplane/models"
	"github.com/keyplane/keyplane/northbound/grpc"
	"github.com/keyplane/keyplane/proto/ligato/configurator"
	"github.com/keyplane/keyplane/proto/ligato/generic"
	"github.com/keyplane/keyplane/proto/ligato/kvscheduler"
	"github.com/keyplane/keyplane/proto/ligato/linux/interfaces"
	"github.com/keyplane/keyplane/proto/ligato/vpp/ipsec"
	"github.com/keyplane/keyplane/scheduler"
)

// data packs a value as clients do.
func data(v proto.Message) *generic.Data {
	packed, err := proto.Marshal(v)
	if err != nil {
		panic(err)
	}
	return &generic.Data{Union: &generic.Data_Any{Any: &anypb.Any{
		TypeUrl: "models.ligato.io/" + string(v.ProtoReflect().Descriptor().FullName()), Value: packed,
	}}}
}

func put(vs ...proto.Message) (out []*generic.UpdateItem) {
	for _, v := range vs {
		out = append(out, &generic.UpdateItem{Item: &generic.Item{Data: data(v)}})
	}
	return out
}

func drop(model string, names ...string) (out []*generic.UpdateItem) {
	for _, name := range names {
		out = append(out, &generic.UpdateItem{Item: &generic.Item{Id: &generic.Item_ID{Model: model, Name: name}}})
	}
	return out
}

const ifModel = "linux.interfaces.interface"

// with adds metadata: "datasrc=ci revert=true".
func with(ctx context.Context, text string) context.Context {
	for f := range strings.FieldsSeq(text) {
		key, value, _ := strings.Cut(f, "=")
		ctx = metadata.AppendToOutgoingContext(ctx, key, value)
	}
	return ctx
}

// results are "KEY STATE message", without the start of the keys.
func results(r *generic.SetConfigResponse) string {
	var out []string
	for _, one := range r.GetResults() {
		key := strings.TrimPrefix(strings.TrimPrefix(one.Key, ifPrefix), routePrefix)
		out = append(out, strings.TrimSpace(key+" "+one.Status.Status+" "+one.Status.Message))
	}
	return strings.Join(out, ", ")
}

func TestSetConfig(t *testing.T) {
	w := newWorld(t, nil)
	w.fail(ifPrefix+"full", errFull)
	w.fail(ifPrefix+"full2", errFull)
	manager := generic.NewManagerServiceClient(w.dial(t))
	steps := []struct {
		what    string
		meta    string
		req     *generic.SetConfigRequest
		results string // without the transaction
		err     string
		stands  string
	}{
		{
			what: "values", req: &generic.SetConfigRequest{Updates: put(iface("if1"), route("10.1.0.0/16", "if2"))},
			results: "if1 CONFIGURED, 10.1.0.0/16/if2 PENDING outgoing-interface-is-up", stands: "if1",
		},
		{
			what: "another source", meta: "datasrc=ci", req: &generic.SetConfigRequest{Updates: put(iface("if2"))},
			results: "if2 CONFIGURED", stands: "10.1.0.0/16/if2 if1 if2",
		},
		{
			what: "a removal by its id", req: &generic.SetConfigRequest{Updates: drop(ifModel, "if1", "if9", "if2")},
			results: "if1 REMOVED, if9 REMOVED, if2 CONFIGURED still declared by ci", stands: "10.1.0.0/16/if2 if2",
		},
		{
			what: "one source is replaced", req: &generic.SetConfigRequest{OverwriteAll: true, Updates: put(iface("if3"))},
			results: "if3 CONFIGURED, 10.1.0.0/16/if2 REMOVED", stands: "if2 if3",
		},
		{
			what: "best effort", req: &generic.SetConfigRequest{Updates: put(&interfaces.Interface{Name: "if4", Mtu: 10000}, iface("full"), iface("if5"))},
			err: "FailedPrecondition: KeyErrors: [" + ifPrefix + "if4 (VALIDATE): invalid value: mtu is 10000; expected at most 9216, " + ifPrefix + "full (CREATE): no space left] " +
				"| if4 INVALID VALIDATE [mtu] | full RETRYING CREATE []",
			stands: "if2 if3 if5",
		},
		{
			what: "all or nothing: a value is invalid", meta: "revert=true", req: &generic.SetConfigRequest{Updates: put(&interfaces.Interface{Name: "if6", Mtu: 10000}, iface("if7"))},
			err: "FailedPrecondition: KeyErrors: [" + ifPrefix + "if6 (VALIDATE): invalid value: mtu is 10000; expected at most 9216] | if6 INVALID VALIDATE [mtu]", stands: "if2 if3 if5",
		},
		{
			what: "all or nothing: a verb fails", meta: "revert=true datasrc=new", req: &generic.SetConfigRequest{Updates: put(iface("if7"), iface("full2"))},
			err: "FailedPrecondition: KeyErrors: [" + ifPrefix + "full2 (CREATE): no space left] | full2 FAILED CREATE []", stands: "if2 if3 if5",
		},
		{
			what: "malformed items", req: &generic.SetConfigRequest{Updates: append(put(iface(""), iface("if8")), append(drop("no.model", "x"), &generic.UpdateItem{})...)},
			err: "InvalidArgument: nothing was changed, because the request is malformed: updates[0].item: name is required; " +
				`updates[2].item: id.model is "no.model": no such model; MetaService.KnownModels lists them; updates[3].item: it has neither id nor data | ` +
				"updates[0].item | updates[2].item | updates[3].item", stands: "if2 if3 if5",
		},
		{
			what: "a source that cannot be", meta: "datasrc=a/b", req: &generic.SetConfigRequest{},
			err: `InvalidArgument: invalid name of a data source: "a/b": expected up to 63 letters, digits, dots, dashes and underscores`, stands: "if2 if3 if5",
		},
		{
			what: "metadata", meta: "revert=yes!", req: &generic.SetConfigRequest{},
			err: `InvalidArgument: metadata revert: "yes!": expected true or false`, stands: "if2 if3 if5",
		},
	}
	for _, s := range steps {
		var header metadata.MD
		got, err := manager.SetConfig(with(t.Context(), s.meta), s.req, rpc.Header(&header))
		if text := explain(err); text != s.err {
			t.Errorf("%s: error\n%s, want\n%s", s.what, text, s.err)
		}
		if err == nil {
			want := fmt.Sprintf("seqnum NONEXISTENT %s, %s", header.Get("seqnum")[0], s.results)
			if results(got) != want {
				t.Errorf("%s: results %q, want %q", s.what, results(got), want)
			}
		}
		if got := w.names(); got != s.stands {
			t.Errorf("%s: stands %q, want %q", s.what, got, s.stands)
		}
	}
}

// explain is an error with its details.
func explain(err error) string {
	if err == nil {
		return ""
	}
	st := status.Convert(err)
	out := []string{fmt.Sprintf("%s: %s", st.Code(), st.Message())}
	for _, d := range st.Details() {
		switch d := d.(type) {
		case *kvscheduler.ValueStatus:
			out = append(out, fmt.Sprintf("%s %s %s %v", strings.TrimPrefix(d.Key, ifPrefix), d.State, d.LastOperation, d.Details))
		case *errdetails.BadRequest:
			for _, f := range d.FieldViolations {
				out = append(out, f.Field)
			}
		default:
			out = append(out, fmt.Sprint(d))
		}
	}
	return strings.Join(out, " | ")
}

func TestItemsThatContradictThemselves(t *testing.T) {
	w := newWorld(t, nil)
	manager := generic.NewManagerServiceClient(w.dial(t))
	broken := data(iface("if1"))
	broken.GetAny().Value = []byte{0xff}
	for _, c := range []struct {
		item *generic.Item
		want string
	}{
		{&generic.Item{Id: &generic.Item_ID{Model: ifModel, Name: "if2"}, Data: data(iface("if1"))}, `id.name is "if2", but data makes the name "if1"`},
		{&generic.Item{Id: &generic.Item_ID{Model: "vpp.interfaces"}, Data: data(iface("if1"))}, `id.model is "vpp.interfaces", but data is a value of "linux.interfaces.interface"`},
		{&generic.Item{Data: data(&generic.Item{})}, `data.any.type_url is "models.ligato.io/ligato.generic.Item": no such model; expected "models.ligato.io/"`},
		{&generic.Item{Data: broken}, "data.any.value is no ligato.linux.interfaces.Interface: "},
		{&generic.Item{Id: &generic.Item_ID{Model: ifModel}}, `id.name is "": expected the name of a value of linux.interfaces.interface`},
		{&generic.Item{Id: &generic.Item_ID{Model: ifModel, Name: "../../x"}}, `id.name is "../../x": expected the name of a value of`},
		{&generic.Item{Data: &generic.Data{}}, "it has neither id nor data"},
	} {
		_, err := manager.SetConfig(t.Context(), &generic.SetConfigRequest{Updates: []*generic.UpdateItem{{Item: c.item}}})
		if status.Code(err) != codes.InvalidArgument || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%v: %v; want %s", c.item, err, c.want)
		}
	}
}

// An error fits into the header of an answer, however many values failed.
func TestErrorsAreBounded(t *testing.T) {
	w := newWorld(t, nil)
	manager := generic.NewManagerServiceClient(w.dial(t))
	var bad []proto.Message
	for i := range 5000 {
		bad = append(bad, &interfaces.Interface{Name: fmt.Sprintf("if%d-%s", i, strings.Repeat("é", 300)), Mtu: 10000})
	}
	for _, req := range []*generic.SetConfigRequest{{Updates: put(bad...)}, {Updates: make([]*generic.UpdateItem, 5000)}} {
		for i, u := range req.Updates {
			if u == nil {
				req.Updates[i] = &generic.UpdateItem{}
			}
		}
		var trailer metadata.MD
		_, err := manager.SetConfig(t.Context(), req, rpc.Trailer(&trailer), rpc.MaxCallSendMsgSize(1<<30))
		if err == nil {
			t.Fatal("no error")
		}
		size := 3*len(status.Convert(err).Message()) + 4*proto.Size(status.Convert(err).Proto())/3
		if size > 8<<10 || len(status.Convert(err).Details()) == 0 {
			t.Errorf("the header has %d bytes: %.200v", size, err)
		}
	}
}

func TestGetConfigAndDumpState(t *testing.T) {
	w := newWorld(t, nil)
	manager := generic.NewManagerServiceClient(w.dial(t))
	labelled := put(iface("if1"), route("10.1.0.0/16", "if9"))
	for _, u := range labelled {
		u.Labels = map[string]string{"from": "test", "more": "x"}
	}
	if _, err := manager.SetConfig(t.Context(), &generic.SetConfigRequest{Updates: labelled}); err != nil {
		t.Fatal(err)
	}
	secret := &ipsec.SecurityAssociation{Index: 1, CryptoKey: "abc", IntegKey: "def"}
	if _, err := manager.SetConfig(with(t.Context(), "datasrc=ci"), &generic.SetConfigRequest{Updates: put(iface("if2"), secret)}); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		req  *generic.GetConfigRequest
		want string
	}{
		{&generic.GetConfigRequest{}, "linux.interfaces.interface/if1 CONFIGURED 2, linux.interfaces.interface/if2 CONFIGURED 0, linux.l3.route/10.1.0.0/16/if9 PENDING 2, vpp.ipsec.sa/1 CONFIGURED 0"},
		{&generic.GetConfigRequest{Ids: []*generic.Item_ID{{Model: ifModel, Name: "if2"}, {Model: ifModel, Name: "if7"}}}, "linux.interfaces.interface/if2 CONFIGURED 0"},
		{&generic.GetConfigRequest{Labels: map[string]string{"from": "test"}}, "linux.interfaces.interface/if1 CONFIGURED 2, linux.l3.route/10.1.0.0/16/if9 PENDING 2"},
		{&generic.GetConfigRequest{Labels: map[string]string{"from": "test", "more": "y"}}, ""},
		{&generic.GetConfigRequest{Labels: map[string]string{"from": ""}}, "linux.interfaces.interface/if1 CONFIGURED 2, linux.l3.route/10.1.0.0/16/if9 PENDING 2"},
		{&generic.GetConfigRequest{Labels: map[string]string{"!from": ""}}, "linux.interfaces.interface/if2 CONFIGURED 0, vpp.ipsec.sa/1 CONFIGURED 0"},
		{&generic.GetConfigRequest{Labels: map[string]string{"!from": "else", "more": ""}}, "linux.interfaces.interface/if1 CONFIGURED 2, linux.l3.route/10.1.0.0/16/if9 PENDING 2"},
	} {
		got, err := manager.GetConfig(t.Context(), c.req)
		if err != nil {
			t.Error(err)
		}
		var out []string
		for _, i := range got.GetItems() {
			out = append(out, fmt.Sprintf("%s/%s %s %d", i.Item.Id.Model, i.Item.Id.Name, i.Status.Status, len(i.Labels)))
			value, err := anypb.UnmarshalNew(i.Item.Data.GetAny(), proto.UnmarshalOptions{})
			if sa, ok := value.(*ipsec.SecurityAssociation); ok && sa.CryptoKey != "(secret)" || err != nil {
				t.Errorf("over TCP without a certificate: %v, %v", value, err)
			}
		}
		if text := strings.Join(out, ", "); text != c.want {
			t.Errorf("%v: %s, want %s", c.req, text, c.want)
		}
	}
	_, err := manager.GetConfig(t.Context(), &generic.GetConfigRequest{Ids: []*generic.Item_ID{{Model: ifModel, Name: "if2"}}, Labels: map[string]string{"a": "b"}})
	if explain(err) != "InvalidArgument: ids and labels: expected only one of them" {
		t.Error(explain(err))
	}
	_, err = manager.GetConfig(t.Context(), &generic.GetConfigRequest{Ids: []*generic.Item_ID{{Model: ifModel}}})
	if want := "InvalidArgument: the request is malformed: ids[0]: id.name is"; !strings.HasPrefix(explain(err), want) {
		t.Errorf("%s; expected %s", explain(err), want)
	}
	dump, err := manager.DumpState(t.Context(), &generic.DumpStateRequest{})
	if err != nil || len(dump.Items) != 3 || dump.Items[0].Item.Id.Name != "if1" || dump.Items[1].Item.Id.Name != "if2" || dump.Items[2].Item.Id.Name != "1" {
		t.Errorf("%v, %v", dump, err)
	}
	dump, err = manager.DumpState(t.Context(), &generic.DumpStateRequest{Ids: []*generic.Item_ID{{Model: ifModel, Name: "if2"}, {Model: ifModel, Name: "if7"}}})
	if err != nil || len(dump.Items) != 1 || dump.Items[0].Item.Id.Name != "if2" {
		t.Errorf("%v, %v", dump, err)
	}
}

// A client that waits gets the answer when nothing is pending, or what is pending, a little
// before its deadline.
func TestWaitDone(t *testing.T) {
	w := newWorld(t, nil)
	manager := generic.NewManagerServiceClient(w.dial(t))
	answered := make(chan error, 1)
	go func() {
		_, err := manager.SetConfig(with(t.Context(), "wait-done=true"), &generic.SetConfigRequest{Updates: put(route("10.1.0.0/16", "if1"))})
		answered <- err
	}()
	w.eventually(t, "the route is pending", func() bool {
		st, ok := w.sched.Status(routePrefix + "10.1.0.0/16/if1")
		return ok && st.State == scheduler.Pending
	})
	select {
	case err := <-answered:
		t.Errorf("answered while the route is pending: %v", err)
	default:
	}
	if _, err := manager.SetConfig(t.Context(), &generic.SetConfigRequest{Updates: put(iface("if1"))}); err != nil {
		t.Error(err)
	}
	if err := <-answered; err != nil {
		t.Error(err)
	}

	err := whileWaiting(t.Context(), func(ctx context.Context) error {
		_, err := manager.SetConfig(with(ctx, "wait-done=1"), &generic.SetConfigRequest{Updates: put(route("10.2.0.0/16", "if2"))})
		return err
	})
	const want = "DeadlineExceeded: context deadline exceeded while waiting: " + routePrefix + "10.2.0.0/16/if2 is PENDING: it waits for outgoing-interface-is-up | " +
		routePrefix + "10.2.0.0/16/if2 PENDING UNDEFINED [outgoing-interface-is-up]"
	if got := explain(err); got != want {
		t.Errorf("at the deadline: %s", got)
	}
}

// whileWaiting makes a request that waits until its deadline. On a busy machine a short deadline passes before the
// request waits; then it is made again with a longer one.
func whileWaiting(ctx context.Context, request func(context.Context) error) (err error) {
	for _, deadline := range []time.Duration{time.Second, 10 * time.Second, testkit.Patience} {
		bounded, cancel := context.WithTimeout(ctx, deadline)
		err = request(bounded)
		cancel()
		if err == nil || strings.Contains(err.Error(), "while waiting") {
			break
		}
	}
	return err
}

func TestMeta(t *testing.T) {
	w := newWorld(t, nil)
	client := generic.NewMetaServiceClient(w.dial(t))
	known, err := client.KnownModels(t.Context(), &generic.KnownModelsRequest{})
	if err != nil || len(known.KnownModels) != len(models.BuiltIn().All()) {
		t.Fatal(known, err)
	}
	for _, m := range known.KnownModels {
		if len(m.Options) != 2 || m.Options[0].Key != "nameTemplate" || len(m.Options[0].Values) != 1 || m.Options[1].Key != "protoFile" {
			t.Errorf("%s: %v", m.ProtoName, m.Options)
		}
		file, err := client.ProtoFileDescriptor(t.Context(), &generic.ProtoFileDescriptorRequest{FullProtoFileName: m.Options[1].Values[0]})
		if err != nil || file.FileDescriptor.GetName() != m.Options[1].Values[0] || file.FileImportDescriptors == nil {
			t.Errorf("%s: %v", m.Options[1].Values[0], err)
		}
		seen := map[string]bool{}
		for _, f := range append(file.GetFileImportDescriptors().GetFile(), file.GetFileDescriptor()) {
			for _, needed := range f.Dependency {
				if !seen[needed] {
					t.Errorf("%s comes before %s, which it imports", f.GetName(), needed)
				}
			}
			seen[f.GetName()] = true
		}
	}
	metrics, err := client.KnownModels(t.Context(), &generic.KnownModelsRequest{Class: "metrics"})
	if err != nil || len(metrics.KnownModels) != 1 || !proto.Equal(metrics.KnownModels[0].Spec, &generic.ModelSpec{Module: "govppmux", Version: "v0", Type: "stats", Class: "metrics"}) {
		t.Error(cmp.Diff("", metrics.String()), err)
	}
	_, err = client.ProtoFileDescriptor(t.Context(), &generic.ProtoFileDescriptorRequest{FullProtoFileName: "google/protobuf/any.proto"})
	if explain(err) != `NotFound: full_proto_file_name: no model is declared in "google/protobuf/any.proto"; KnownModels lists the files` {
		t.Error(explain(err))
	}
}

// An answer with more bytes than four times the largest request is refused before it is made, by each call with many
// values. Single values can still be read.
func TestLargeAnswers(t *testing.T) {
	w := newWorld(t, nil)
	addr := w.serve(t, grpc.Config{Endpoint: "127.0.0.1:0", MaxMsgSize: 1000})
	line := connect(t, addr.String(), rpc.WithTransportCredentials(insecure.NewCredentials()))
	manager, config := generic.NewManagerServiceClient(line), configurator.NewConfiguratorServiceClient(line)
	for i := range 100 {
		if _, err := manager.SetConfig(t.Context(), &generic.SetConfigRequest{Updates: put(iface(fmt.Sprintf("interface%040d", i)))}); err != nil {
			t.Fatal(err)
		}
	}
	ctx := t.Context()
	for name, call := range map[string]func() error{
		"Get":       func() error { _, err := config.Get(ctx, &configurator.GetRequest{}); return err },
		"Dump":      func() error { _, err := config.Dump(ctx, &configurator.DumpRequest{}); return err },
		"GetConfig": func() error { _, err := manager.GetConfig(ctx, &generic.GetConfigRequest{}); return err },
		"DumpState": func() error { _, err := manager.DumpState(ctx, &generic.DumpStateRequest{}); return err },
	} {
		err := call()
		if status.Code(err) != codes.ResourceExhausted || !strings.Contains(err.Error(), "the maximum is 4000 bytes, 4 times max-msg-size in grpc.conf") {
			t.Errorf("%s: %v", name, err)
		}
	}
	one := []*generic.Item_ID{{Model: ifModel, Name: fmt.Sprintf("interface%040d", 7)}}
	if got, err := manager.GetConfig(ctx, &generic.GetConfigRequest{Ids: one}); err != nil || len(got.GetItems()) != 1 {
		t.Errorf("one value: %v, %v", got, err)
	}
}

// Answers with many values wait for the memory that they share with others.
func TestAnswersWaitForMemory(t *testing.T) {
	w := newWorld(t, nil)
	memory := budget.New(1 << 20)
	w.more.Memory = memory
	leave, err := memory.Enter(t.Context(), 1<<20)
	if err != nil {
		t.Fatal(err)
	}
	manager := generic.NewManagerServiceClient(w.dial(t))
	answered := make(chan error, 1)
	go func() {
		_, err := manager.DumpState(t.Context(), &generic.DumpStateRequest{})
		answered <- err
	}()
	for _, waiting := memory.Inside(); waiting == 0; _, waiting = memory.Inside() {
		runtime.Gosched()
	}
	select {
	case err := <-answered:
		t.Errorf("it did not wait: %v", err)
	default:
	}
	leave()
	if err := <-answered; err != nil {
		t.Error(err)
	}
}
