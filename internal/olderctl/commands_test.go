package olderctl

import (
	"context"
	"io"
	"slices"
	"strings"
	"testing"

	"go.fd.io/govpp/api"
	"go.fd.io/govpp/binapi/vpe"
	"go.fd.io/govpp/proxy"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/reflection/grpc_reflection_v1alpha"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protodesc"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/descriptorpb"
	"google.golang.org/protobuf/types/dynamicpb"
	"google.golang.org/protobuf/types/known/anypb"

	"github.com/keyplane/keyplane/internal/testkit"
	"github.com/keyplane/keyplane/proto/ligato/configurator"
	"github.com/keyplane/keyplane/proto/ligato/generic"
	"github.com/keyplane/keyplane/proto/ligato/linux"
	"github.com/keyplane/keyplane/proto/ligato/linux/interfaces"
	"github.com/keyplane/keyplane/proto/ligato/vpp"
	vppinterfaces "github.com/keyplane/keyplane/proto/ligato/vpp/interfaces"
)

// TestCommands goes through the commands of the older agentctl, in an order in which each
// has something to show. Those that write into etcd are in TestStoreCommands; completion asks
// nobody.
func TestCommands(t *testing.T) {
	// With the rights of the older agent: VPP's command line is not open otherwise.
	p := start(t, map[string]string{"agent.conf": "compat: vpp-agent-3.5\n", "http.conf": "", "grpc.conf": "prometheus-metrics: true\n"})
	for _, c := range []struct {
		name string
		do   func(p *peer)
	}{
		{"model list", (*peer).modelList},
		{"model inspect, generate", (*peer).modelInspect},
		{"config update", (*peer).configUpdate},
		{"config get", (*peer).configGet},
		{"config retrieve", (*peer).configRetrieve},
		{"config resync", (*peer).configResync},
		{"config history", (*peer).configHistory},
		{"config watch", (*peer).configWatch},
		{"config delete", (*peer).configDelete},
		{"dump", (*peer).dump},
		{"values", (*peer).values},
		{"import --grpc", (*peer).importGRPC},
		{"service list", (*peer).serviceList},
		{"service call", (*peer).serviceCall},
		{"status", (*peer).status},
		{"vpp cli, vpp info", (*peer).vppCLI},
		{"log list, log set", (*peer).log},
		{"metrics list, metrics get", (*peer).metrics},
		{"report", (*peer).report},
	} {
		if !t.Run(c.name, func(t *testing.T) {
			one := *p
			one.T = t
			c.do(&one)
		}) {
			return // the others need what this one did
		}
	}
}

// known returns the models of a class, as each command first asks for them.
func (p *peer) known(class string) []*generic.ModelDetail {
	p.Helper()
	answer, err := generic.NewMetaServiceClient(p.grpc).KnownModels(p.Context(), &generic.KnownModelsRequest{Class: class})
	if err != nil {
		p.Fatal(err)
	}
	return answer.KnownModels
}

// modelList reads the options that the program needs of each model.
func (p *peer) modelList() {
	all := p.known("")
	for _, m := range all {
		var keys []string
		for _, o := range m.Options {
			keys = append(keys, o.Key)
		}
		if slices.Sort(keys); !slices.Equal(keys, []string{"nameTemplate", "protoFile"}) {
			p.Errorf("%s.%s has the options %v", m.Spec.GetModule(), m.Spec.GetType(), keys)
		}
	}
	if len(all) < 40 || len(p.known("config")) == 0 || len(p.known("metrics")) != 1 {
		p.Errorf("%d models, %d of metrics", len(all), len(p.known("metrics")))
	}
}

// modelInspect reads the descriptors of a model's file.
func (p *peer) modelInspect() {
	all := p.known("config")
	i := slices.IndexFunc(all, func(m *generic.ModelDetail) bool { return m.ProtoName == "ligato.linux.interfaces.Interface" })
	if i < 0 {
		p.Fatal("the model of Linux interfaces is missing")
	}
	file := ""
	for _, o := range all[i].Options {
		if o.Key == "protoFile" {
			file = o.Values[0]
		}
	}
	answer, err := generic.NewMetaServiceClient(p.grpc).ProtoFileDescriptor(p.Context(), &generic.ProtoFileDescriptorRequest{FullProtoFileName: file})
	if err != nil || answer.FileDescriptor.GetName() != file || answer.FileImportDescriptors == nil {
		p.Errorf("%s: %v", file, err)
	}
}

// update is an item with a value.
func (p *peer) update(model, name string, value proto.Message, labels map[string]string) *generic.UpdateItem {
	p.Helper()
	data, err := anypb.New(value)
	if err != nil {
		p.Fatal(err)
	}
	data.TypeUrl = "models.ligato.io/" + string(value.ProtoReflect().Descriptor().FullName())
	return &generic.UpdateItem{
		Item:   &generic.Item{Id: &generic.Item_ID{Model: model, Name: name}, Data: &generic.Data{Union: &generic.Data_Any{Any: data}}},
		Labels: labels,
	}
}

// fromClient is the label of values that the program declares.
func fromClient() map[string]string { return map[string]string{"io.ligato.from-client": "agentctl"} }

func (p *peer) setConfig(replace bool, updates ...*generic.UpdateItem) *generic.SetConfigResponse {
	p.Helper()
	answer, err := generic.NewManagerServiceClient(p.grpc).SetConfig(p.Context(), &generic.SetConfigRequest{OverwriteAll: replace, Updates: updates})
	if err != nil {
		p.Fatal(err)
	}
	return answer
}

func veth(name, peer string) *interfaces.Interface {
	return &interfaces.Interface{Name: name, Type: interfaces.Interface_VETH, Enabled: true, Link: &interfaces.Interface_Veth{Veth: &interfaces.VethLink{PeerIfName: peer}}}
}

func loopback(name string) *vppinterfaces.Interface {
	return &vppinterfaces.Interface{Name: name, Type: vppinterfaces.Interface_SOFTWARE_LOOPBACK, Enabled: true}
}

const linuxModel, vppModel = "linux.interfaces.interface", "vpp.interfaces"

// configUpdate declares values with a label, and expects the state of each.
func (p *peer) configUpdate() {
	answer := p.setConfig(true,
		p.update(linuxModel, "older1", veth("older1", "older2"), fromClient()), p.update(linuxModel, "older2", veth("older2", "older1"), fromClient()),
		p.update(vppModel, "loop1", loopback("loop1"), fromClient()))
	states := map[string]string{}
	for _, r := range answer.Results {
		states[r.Key] = r.Status.GetStatus()
	}
	for _, key := range []string{ifKey + "older1", ifKey + "older2", "config/vpp/v2/interfaces/loop1"} {
		if states[key] != "CONFIGURED" {
			p.Errorf("%s is %q in %v", key, states[key], states)
		}
	}
}

const ifKey = "config/linux/interfaces/v2/interface/"

// configGet finds the values, with their label.
func (p *peer) configGet() {
	p.known("config")
	answer, err := generic.NewManagerServiceClient(p.grpc).GetConfig(p.Context(), &generic.GetConfigRequest{Labels: fromClient()})
	if err != nil || len(answer.Items) != 3 {
		p.Errorf("%d items, %v", len(answer.GetItems()), err)
	}
	for _, it := range answer.GetItems() {
		if it.Item.GetData().GetAny().GetTypeUrl() == "" || it.Labels["io.ligato.from-client"] != "agentctl" {
			p.Errorf("the item is %v", it)
		}
	}
}

// configRetrieve reads the actual values back.
func (p *peer) configRetrieve() {
	answer, err := configurator.NewConfiguratorServiceClient(p.grpc).Dump(p.Context(), &configurator.DumpRequest{})
	if err != nil {
		p.Fatal(err)
	}
	if !slices.ContainsFunc(answer.Dump.GetVppConfig().GetInterfaces(), func(v *vppinterfaces.Interface) bool { return v.Name == "loop1" }) {
		p.Errorf("the dump is %v", answer.Dump)
	}
}

// record is the part of a transaction that the program reads.
type record struct {
	SeqNum   uint64
	TxnType  string
	Executed []struct {
		Operation, Key string
		NewState       string
	}
	Values []struct{ Key string }
}

func (p *peer) configResync() {
	var r record
	p.read("POST", "/scheduler/downstream-resync?retry=1&verbose=1", "", &r)
	if r.TxnType != "NBTransaction" {
		p.Errorf("the transaction is %+v", r)
	}
}

// configHistory reads all transactions, and one.
func (p *peer) configHistory() {
	p.known("config")
	var all []record
	p.read("GET", "/scheduler/txn-history", "", &all)
	i := slices.IndexFunc(all, func(r record) bool { return len(r.Values) == 3 })
	if i < 0 {
		p.Fatalf("the history is %+v", all)
	}
	if !strings.Contains(string(p.ask("GET", "/scheduler/txn-history?format=text", "")), "loop1") {
		p.Error("the text lacks loop1")
	}
}

// configWatch reads notifications from the first one on, and those that a filter selects. Both
// follow those that are still to come, so each ends its call.
func (p *peer) configWatch() {
	first := func(want string, filters ...*configurator.Notification) *configurator.NotifyResponse {
		p.Helper()
		ctx, cancel := context.WithTimeout(p.Context(), testkit.Patience)
		defer cancel()
		stream, err := configurator.NewConfiguratorServiceClient(p.grpc).Notify(ctx, &configurator.NotifyRequest{Idx: 0, Filters: filters})
		for err == nil {
			var got *configurator.NotifyResponse
			if got, err = stream.Recv(); strings.Contains(got.GetNotification().String(), want) {
				return got
			}
			if len(filters) > 0 && err == nil {
				p.Fatalf("the filter passes %v", got)
			}
		}
		p.Fatalf("no notification has %s: %v", want, err)
		return nil
	}
	if got := first("older1"); got.Notification.GetLinuxNotification() == nil || got.NextIdx == 0 {
		p.Errorf("the notification is %v", got)
	}
	named := &configurator.Notification{}
	if err := protojson.Unmarshal([]byte(`{"vpp_notification": {"interface": {"state": {"name": "loop1"}}}}`), named); err != nil {
		p.Fatal(err)
	}
	if got := first("loop1", named); got.Notification.GetVppNotification().GetInterface().GetState().GetName() != "loop1" {
		p.Errorf("the notification is %v", got)
	}
}

// configDelete removes a value by each of the two services.
func (p *peer) configDelete() {
	_, err := configurator.NewConfiguratorServiceClient(p.grpc).Delete(p.Context(), &configurator.DeleteRequest{
		Delete: &configurator.Config{LinuxConfig: &linux.ConfigData{Interfaces: []*interfaces.Interface{veth("older1", "older2"), veth("older2", "older1")}}}, WaitDone: true,
	})
	if err != nil {
		p.Fatal(err)
	}
	p.setConfig(false, &generic.UpdateItem{Item: &generic.Item{Id: &generic.Item_ID{Model: vppModel, Name: "loop1"}}})
	answer, err := configurator.NewConfiguratorServiceClient(p.grpc).Get(p.Context(), &configurator.GetRequest{})
	if err != nil || len(answer.Config.GetLinuxConfig().GetInterfaces())+len(answer.Config.GetVppConfig().GetInterfaces()) != 0 {
		p.Errorf("after the removal: %v, %v", answer, err)
	}
	_, err = configurator.NewConfiguratorServiceClient(p.grpc).Update(p.Context(), &configurator.UpdateRequest{
		Update: &configurator.Config{VppConfig: &vpp.ConfigData{Interfaces: []*vppinterfaces.Interface{loopback("loop1")}}}, WaitDone: true,
	})
	if err != nil {
		p.Error(err)
	}
}

// dump asks for each model in each view.
func (p *peer) dump() {
	type entry struct {
		Key   string
		Value struct {
			ProtoMsgName string
			ProtoMsgData map[string]any
		}
		Origin   int
		Metadata map[string]any
	}
	for _, view := range []string{"SB", "NB", "cached"} {
		var found []entry
		p.read("GET", "/scheduler/dump?key-prefix=config/vpp/v2/interfaces/&view="+view, "", &found)
		if !slices.ContainsFunc(found, func(e entry) bool {
			return e.Key == "config/vpp/v2/interfaces/loop1" && e.Value.ProtoMsgName == "ligato.vpp.interfaces.Interface" && e.Value.ProtoMsgData["name"] == "loop1" && e.Origin == 1
		}) {
			p.Errorf("view %s: %+v", view, found)
		}
		if !slices.ContainsFunc(found, func(e entry) bool {
			_, numbered := e.Metadata["SwIfIndex"]
			return numbered && e.Metadata["InternalName"] == "loop0"
		}) && view != "NB" {
			p.Errorf("view %s: no metadata of loop1: %+v", view, found)
		}
	}
}

// values asks for all states, with the empty argument that the program sends.
func (p *peer) values() {
	type status struct{ Key, State string }
	type base struct {
		Value         status
		DerivedValues []status `json:"derived_values"`
	}
	var all []base
	p.read("GET", "/scheduler/status?key-prefix=config/vpp/v2/interfaces/&key=", "", &all)
	if !slices.ContainsFunc(all, func(b base) bool { return b.Value == status{"config/vpp/v2/interfaces/loop1", "CONFIGURED"} }) {
		p.Errorf("the states are %+v", all)
	}
}

// importGRPC declares several values in one transaction, in a data source of its own.
func (p *peer) importGRPC() {
	ctx := metadata.AppendToOutgoingContext(p.Context(), "datasrc", "import")
	_, err := generic.NewManagerServiceClient(p.grpc).SetConfig(ctx, &generic.SetConfigRequest{Updates: []*generic.UpdateItem{
		p.update(vppModel, "loop2", loopback("loop2"), nil), p.update(vppModel, "loop3", loopback("loop3"), nil),
	}})
	if err != nil {
		p.Error(err)
	}
}

// serviceList asks for the services, by the older protocol.
func (p *peer) serviceList() {
	stream, err := grpc_reflection_v1alpha.NewServerReflectionClient(p.grpc).ServerReflectionInfo(p.Context())
	if err != nil {
		p.Fatal(err)
	}
	//nolint:staticcheck // the older protocol is the subject
	err = stream.Send(&grpc_reflection_v1alpha.ServerReflectionRequest{MessageRequest: &grpc_reflection_v1alpha.ServerReflectionRequest_ListServices{ListServices: "*"}})
	if err != nil {
		p.Fatal(err)
	}
	answer, err := stream.Recv()
	if err != nil {
		p.Fatal(err)
	}
	var names []string
	for _, s := range answer.GetListServicesResponse().GetService() { //nolint:staticcheck // as above
		names = append(names, s.Name) //nolint:staticcheck // as above
	}
	for _, want := range []string{"ligato.configurator.ConfiguratorService", "ligato.generic.ManagerService", "ligato.generic.MetaService"} {
		if !slices.Contains(names, want) {
			p.Errorf("%s is missing in %v", want, names)
		}
	}
	if err := stream.CloseSend(); err != nil {
		p.Error(err)
	}
}

// serviceCall learns a method from the agent, and calls it with a JSON text: it has no message of
// that service built in.
func (p *peer) serviceCall() {
	files := &descriptorpb.FileDescriptorSet{File: p.filesOf("ligato.generic.MetaService")}
	all, err := protodesc.NewFiles(files)
	if err != nil {
		p.Fatal(err)
	}
	found, err := all.FindDescriptorByName("ligato.generic.MetaService")
	if err != nil {
		p.Fatal(err)
	}
	method := found.(protoreflect.ServiceDescriptor).Methods().ByName("KnownModels")
	request, answer := dynamicpb.NewMessage(method.Input()), dynamicpb.NewMessage(method.Output())
	if err := protojson.Unmarshal([]byte(`{"class": "metrics"}`), request); err != nil {
		p.Fatal(err)
	}
	if err := p.grpc.Invoke(p.Context(), "/ligato.generic.MetaService/KnownModels", request, answer); err != nil {
		p.Fatal(err)
	}
	if text := protojson.Format(answer); !strings.Contains(text, `"govppmux"`) {
		p.Errorf("the answer is %s", text)
	}
}

// filesOf asks for the file of a symbol and all that it imports, in an order in which each
// comes after its own imports.
func (p *peer) filesOf(symbol string) (out []*descriptorpb.FileDescriptorProto) {
	p.Helper()
	stream, err := grpc_reflection_v1alpha.NewServerReflectionClient(p.grpc).ServerReflectionInfo(p.Context())
	if err != nil {
		p.Fatal(err)
	}
	defer func() { _ = stream.CloseSend() }()
	seen := map[string]bool{}
	var add func(q *grpc_reflection_v1alpha.ServerReflectionRequest) //nolint:staticcheck // the older protocol is the subject
	add = func(q *grpc_reflection_v1alpha.ServerReflectionRequest) { //nolint:staticcheck // as above
		if err := stream.Send(q); err != nil {
			p.Fatal(err)
		}
		answer, err := stream.Recv()
		if err != nil || answer.GetErrorResponse() != nil { //nolint:staticcheck // as above
			p.Fatal(answer, err)
		}
		for _, text := range answer.GetFileDescriptorResponse().GetFileDescriptorProto() { //nolint:staticcheck // as above
			var file descriptorpb.FileDescriptorProto
			if err := proto.Unmarshal(text, &file); err != nil {
				p.Fatal(err)
			}
			if seen[file.GetName()] {
				continue
			}
			seen[file.GetName()] = true
			for _, needed := range file.GetDependency() {
				if !seen[needed] {
					//nolint:staticcheck // as above
					add(&grpc_reflection_v1alpha.ServerReflectionRequest{MessageRequest: &grpc_reflection_v1alpha.ServerReflectionRequest_FileByFilename{FileByFilename: needed}})
				}
			}
			out = append(out, &file)
		}
	}
	//nolint:staticcheck // as above
	add(&grpc_reflection_v1alpha.ServerReflectionRequest{MessageRequest: &grpc_reflection_v1alpha.ServerReflectionRequest_FileContainingSymbol{FileContainingSymbol: symbol}})
	return out
}

// status reads the health and the version.
func (p *peer) status() {
	var health struct {
		State     int   `json:"state"`
		StartTime int64 `json:"start_time"`
		Plugins   []struct {
			Name  string `json:"name"`
			State int    `json:"state"`
		} `json:"plugins"`
		PluginStatus map[string]struct {
			State int `json:"state"`
		}
	}
	p.read("GET", "/readiness", "", &health)
	if health.State != 1 || health.StartTime == 0 || len(health.Plugins) == 0 || health.PluginStatus["vpp"].State != 1 {
		p.Errorf("the health is %+v", health)
	}
	var version struct{ App, GoVersion, OS, Arch string }
	p.read("GET", "/info/version", "", &version)
	if version.App == "" || version.GoVersion == "" || version.OS == "" || version.Arch == "" {
		p.Errorf("the version is %+v", version)
	}
}

// log lists the levels, and sets one.
func (p *peer) log() {
	type level struct {
		Logger string `json:"logger"`
		Level  string `json:"level"`
	}
	var all []level
	p.read("GET", "/log/list", "", &all)
	if len(all) == 0 {
		p.Fatal("there are no loggers")
	}
	var set level
	p.read("PUT", "/log/"+all[0].Logger+"/debug", "", &set)
	if set != (level{all[0].Logger, "debug"}) {
		p.Errorf("%s was set to %+v", all[0].Logger, set)
	}
	p.read("GET", "/log/list", "", &all)
	if !slices.Contains(all, set) {
		p.Errorf("the levels are %+v", all)
	}
}

// metrics reads the only model of this class.
func (p *peer) metrics() {
	names := p.known("metrics")
	if len(names) != 1 {
		p.Fatalf("the models are %v", names)
	}
	var mux struct {
		RequestsSent uint64 `json:"requests_sent"`
		RequestsDone uint64 `json:"requests_done"`
	}
	p.read("GET", "/metrics/"+names[0].Spec.GetModule()+"."+names[0].Spec.GetType(), "", &mux)
	if mux.RequestsSent == 0 || mux.RequestsDone == 0 {
		p.Errorf("the requests to VPP are %+v", mux)
	}
	for _, path := range []string{"/metrics", "/health", "/govppmux/stats", "/vpp/telemetry", "/vpp/telemetry/memory", "/vpp/telemetry/runtime", "/vpp/telemetry/nodecount"} {
		if len(p.ask("GET", path, "")) == 0 {
			p.Errorf("%s is empty", path)
		}
	}
	// grpc.conf has its own calls counted.
	text := string(p.ask("GET", "/metrics", ""))
	for _, want := range []string{`grpc_server_handled_total{grpc_code="OK",grpc_method="KnownModels",`, `grpc_server_handling_seconds_count{grpc_method="SetConfig",`} {
		if !strings.Contains(text, want) {
			p.Errorf("%s is missing in the %d bytes of /metrics", want, len(text))
		}
	}
}

// vppCLI runs lines of VPP's command line.
func (p *peer) vppCLI() {
	for _, line := range []string{"show version", "show plugins"} {
		var out string
		p.read("POST", "/vpp/command", `{"vppclicommand": "`+line+`"}`, &out)
		if !strings.Contains(out, "simulated") {
			p.Errorf("%s: %s", line, out)
		}
	}
}

// report asks for what no other command asks for: VPP's counters, from gRPC and through the proxy
// of VPP's API.
func (p *peer) report() {
	p.ask("GET", "/configuration", "")
	p.pollStats()
	client, err := proxy.Connect(p.http)
	if err != nil {
		p.Fatal(err)
	}
	counters, err := client.NewStatsClient()
	if err != nil {
		p.Fatal(err)
	}
	var interfaces api.InterfaceStats
	var errors api.ErrorStats
	if err := counters.GetInterfaceStats(&interfaces); err != nil || !slices.ContainsFunc(interfaces.Interfaces, func(c api.InterfaceCounters) bool { return c.InterfaceName == "loop0" }) {
		p.Errorf("VPP's interfaces are %+v, %v", interfaces, err)
	}
	if err := counters.GetErrorStats(&errors); err != nil {
		p.Error(err)
	}
	channel, err := client.NewBinapiClient()
	if err != nil {
		p.Fatal(err)
	}
	var version vpe.ShowVersionReply
	if err := channel.Invoke(p.Context(), &vpe.ShowVersion{}, &version); err != nil || version.Version == "" {
		p.Errorf("VPP is %+v, %v", version, err)
	}
}

// pollStats polls the counters of VPP's interfaces once.
func (p *peer) pollStats() {
	p.Helper()
	stream, err := configurator.NewStatsPollerServiceClient(p.grpc).PollStats(p.Context(), &configurator.PollStatsRequest{NumPolls: 1})
	if err != nil {
		p.Fatal(err)
	}
	var names []string
	for {
		one, err := stream.Recv()
		if err == io.EOF {
			break
		}
		if err != nil {
			p.Fatal(err)
		}
		if one.PollSeq != 0 {
			p.Errorf("the only poll has the number %d", one.PollSeq)
		}
		names = append(names, one.Stats.GetVppStats().GetInterface().GetName())
	}
	if !slices.Contains(names, "loop1") {
		p.Errorf("the counters are those of %v", names)
	}
}
