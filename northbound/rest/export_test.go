package rest

import (
	"context"
	"encoding/json"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/keyplane/keyplane/connectors/filedb"
	"github.com/keyplane/keyplane/models"
	"github.com/keyplane/keyplane/northbound/rest/wire"
	"github.com/keyplane/keyplane/orchestrator"
	"github.com/keyplane/keyplane/scheduler"
)

// everyModel runs f in a world with a descriptor for each model of declared values. Its clients
// declare values, and see secrets if shown says so.
func everyModel(t *testing.T, shown bool, f func(w *world)) {
	w := &world{t: t, sched: scheduler.New(scheduler.Options{Log: slog.New(slog.DiscardHandler)}), stands: map[string]proto.Message{}, broken: map[string]bool{}}
	for _, m := range declaredModels() {
		_, err := scheduler.Register(w.sched, scheduler.Descriptor[proto.Message, struct{}]{
			Name: m.Name(), Prefix: m.Prefix()[:strings.LastIndex(m.Prefix(), "/")+1],
			Match: func(key string) bool {
				of, _, ok := models.BuiltIn().ByKey(key)
				return ok && of == m
			},
			Create: func(_ context.Context, key string, v proto.Message) (struct{}, error) {
				return struct{}{}, w.put(key, v)
			},
			Delete: func(_ context.Context, key string, _ proto.Message, _ struct{}) error { return w.drop(key) },
		})
		w.must(err)
	}
	orch := orchestrator.New(w.sched, orchestrator.Options{Log: slog.New(slog.DiscardHandler)})
	w.handler = Handler(Options{Scheduler: w.sched, Declarer: orch, Sources: orch, Previewer: orch, Contents: orch, Label: "vpp1", Secrets: shown})
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 2)
	go func() { ended <- w.sched.Run(ctx) }()
	go func() { ended <- orch.Run(ctx) }()
	defer func() {
		cancel()
		w.must(<-ended)
		w.must(<-ended)
	}()
	f(w)
}

// declaredModels returns the models of values that people declare.
func declaredModels() []*models.Model {
	return slices.DeleteFunc(slices.Clone(models.BuiltIn().All()), func(m *models.Model) bool { return m.Class != "config" })
}

// TestExportOfEveryModel declares a sample of each model, exports all, and declares the document
// again in each way: nothing changes, and nothing is missing.
func TestExportOfEveryModel(t *testing.T) {
	everyModel(t, true, func(w *world) {
		samples := map[string]string{}
		var body []map[string]any
		for _, m := range declaredModels() {
			v := sampleOf(m)
			key, err := m.Key(v)
			w.must(err)
			text, err := m.Marshal(v)
			w.must(err)
			samples[key] = string(text)
			body = append(body, map[string]any{"key": key, "value": json.RawMessage(text)})
		}
		all, err := json.Marshal(body)
		w.must(err)
		w.says(http.MethodPut, "/configuration?datasrc=samples", string(all), 200, "{}\n")

		for _, path := range []string{"/configuration", "/configuration?source=samples"} {
			code, text := w.ask(http.MethodGet, path, "")
			if code != http.StatusOK || strings.HasPrefix(text, "#") {
				t.Fatalf("%s: %d\n%s", path, code, text)
			}
			// By PUT: everything is as before.
			w.says(http.MethodPost, "/scheduler/plan?as=samples", text, 200, `"Operations": []`)
			w.says(http.MethodPut, "/configuration?datasrc=samples&replace=1", text, 200, "{}\n")
			if again := w.text(path); again != text {
				t.Errorf("%s: declared again, the export is\n%s\nit was\n%s", path, again, text)
			}
			// As a file.
			if got := w.filed(text); !mapsEqual(got, samples) {
				t.Errorf("%s: a file with the export has %d values; expected %d:\n%v\n%v", path, len(got), len(samples), got, samples)
			}
		}
	})
}

// text returns what a path answers.
func (w *world) text(path string) string {
	w.t.Helper()
	code, text := w.ask(http.MethodGet, path, "")
	if code != http.StatusOK {
		w.t.Fatalf("%s: %d %s", path, code, text)
	}
	return text
}

// filed returns the values of a file with this text, in the form of stores, by key.
func (w *world) filed(text string) map[string]string {
	w.t.Helper()
	const root = "/vnf-agent/vpp1/"
	dir := w.t.TempDir()
	path := filepath.Join(dir, "export.yaml")
	w.must(os.WriteFile(path, []byte(text), 0o600))
	db, err := filedb.New(filedb.Config{Paths: []string{dir}}, root, slog.New(slog.DiscardHandler))
	w.must(err)
	events, problems, _, err := db.WithFile(w.t.Context(), root+"config/", path, []byte(text))
	w.must(err)
	for _, p := range problems {
		w.t.Error(p)
	}
	out := map[string]string{}
	for _, e := range events {
		key := strings.TrimPrefix(e.Key, root)
		v, err := models.BuiltIn().Decode(key, e.Value)
		if err != nil {
			w.t.Errorf("%s: %v", key, err)
			continue
		}
		m, _ := models.BuiltIn().ForMessage(v)
		one, err := m.Marshal(v)
		w.must(err)
		out[key] = string(one)
	}
	return out
}

func mapsEqual(a, b map[string]string) bool {
	if len(a) != len(b) {
		return false
	}
	for k, v := range a {
		if b[k] != v {
			return false
		}
	}
	return true
}

// TestExportSelects exports some values, and says what a document lacks.
func TestExportSelects(t *testing.T) {
	declaring(t, func(w *world) {
		w.says("PUT", "/configuration?datasrc=low", "linuxConfig: {interfaces: [{name: if1, type: DUMMY}, {name: if2, type: DUMMY}]}", 200, "{}\n")
		w.says("PUT", "/configuration?datasrc=a-high", "linuxConfig: {interfaces: [{name: if1, type: DUMMY, mtu: 1400}], routes: [{outgoing_interface: if1, dst_network: 10.0.0.0/8}]}", 200, "{}\n")
		w.says("GET", "/configuration?source=low&key="+ifPrefix+"if1", "", 200, "    - name: if1\n      type: DUMMY\n")
		w.says("GET", "/configuration?key=/vnf-agent/vpp1/"+ifPrefix+"if1", "", 200, "      mtu: 1400\n")
		if text := w.text("/configuration?model=linux.l3.route"); strings.Contains(text, "interfaces:") || !strings.Contains(text, "routes:") {
			t.Errorf("the export of routes is %s", text)
		}
		w.says("GET", "/configuration?source=none", "", 404, "no such source")
		w.says("GET", "/configuration?model=linux.l3.rout", "", 400, "no such model")
		w.says("GET", "/configuration?key="+ifPrefix+"if9", "", 404, "no value is declared under the key "+ifPrefix+"if9")
		w.says("GET", "/configuration?format=xml", "", 400, "expected one of yaml, json")

		// The newest value is refused, and another one was never valid.
		w.refused("low", "if2", "if3")
		for _, path := range []string{"/configuration?format=json", "/configuration?source=low&format=json"} {
			var got wire.Export
			w.must(json.Unmarshal([]byte(w.text(path)), &got))
			if len(got.Notes) != 2 || !strings.Contains(got.Notes[0].Error, "the last valid value is exported") || !strings.HasPrefix(got.Notes[1].Error, "not exported: ") {
				t.Errorf("%s: notes %+v", path, got.Notes)
			}
			if !strings.HasPrefix(got.Text, "# "+ifPrefix+"if2: ") || !strings.Contains(got.Text, "name: if2") || strings.Contains(got.Text, "name: if3") {
				t.Errorf("%s: text %s", path, got.Text)
			}
		}
		w.handler = Handler(Options{Scheduler: w.sched})
		w.says("GET", "/configuration?source=low", "", 404, "this agent has no sources")
	})
}

// TestExportNamesHiddenSecrets exports a value with a secret that is not shown.
func TestExportNamesHiddenSecrets(t *testing.T) {
	everyModel(t, false, func(w *world) {
		w.says("PUT", "/configuration", "vppConfig: {interfaces: [{name: m, type: MEMIF, memif: {secret: topsecret}}]}", 200, "{}\n")
		text := w.text("/configuration")
		if !strings.HasPrefix(text, "# config/vpp/v2/interfaces/m: its secrets are hidden\n") || strings.Contains(text, "topsecret") {
			t.Errorf("the export is %s", text)
		}
		w.says("PUT", "/configuration", text, 400, "expected the secret itself")
		w.says("GET", "/configuration?secrets=1", "", 403, "secrets are shown only on the agent's socket")
	})
}

// sampleOf returns a value of a model with every field set that can be, so that its export
// shows each kind of content.
func sampleOf(m *models.Model) proto.Message {
	v := m.New()
	fill(v.ProtoReflect(), 0)
	return v
}

// fill sets the fields of a message. Of alternatives (oneof) the last one stays.
func fill(m protoreflect.Message, depth int) {
	const deepest = 6 // of messages that contain themselves
	fields := m.Descriptor().Fields()
	for i := range fields.Len() {
		fd := fields.Get(i)
		if fd.Message() != nil && depth == deepest {
			continue
		}
		switch {
		case fd.IsMap():
			continue // no model has one
		case fd.IsList():
			list := m.NewField(fd).List()
			list.Append(single(fd, list.NewElement, depth))
			m.Set(fd, protoreflect.ValueOfList(list))
		default:
			m.Set(fd, single(fd, func() protoreflect.Value { return m.NewField(fd) }, depth))
		}
	}
}

// single returns a value of a field.
func single(fd protoreflect.FieldDescriptor, fresh func() protoreflect.Value, depth int) protoreflect.Value {
	switch fd.Kind() { //nolint:exhaustive // of the kinds that models have; a new one panics below
	case protoreflect.MessageKind:
		v := fresh()
		fill(v.Message(), depth+1)
		return v
	case protoreflect.StringKind:
		return protoreflect.ValueOfString(sampleText(string(fd.Name())))
	case protoreflect.EnumKind:
		all := fd.Enum().Values()
		return protoreflect.ValueOfEnum(all.Get(all.Len() - 1).Number())
	case protoreflect.BoolKind:
		return protoreflect.ValueOfBool(true)
	case protoreflect.Int32Kind:
		return protoreflect.ValueOfInt32(7)
	case protoreflect.Uint32Kind:
		return protoreflect.ValueOfUint32(7)
	case protoreflect.Uint64Kind:
		return protoreflect.ValueOfUint64(1 << 60)
	case protoreflect.Int64Kind:
		return protoreflect.ValueOfInt64(-1 << 60)
	case protoreflect.BytesKind:
		return protoreflect.ValueOfBytes([]byte{0, 255})
	case protoreflect.DoubleKind:
		return protoreflect.ValueOfFloat64(0.5)
	case protoreflect.FloatKind:
		return protoreflect.ValueOfFloat32(0.5)
	}
	panic("no sample of " + fd.Kind().String())
}

// sampleText returns a text that suits a field of this name. Those of keys must have the form that
// the key needs; the others have the texts that YAML is known to misread.
func sampleText(field string) string {
	switch {
	case strings.Contains(field, "mac"), strings.Contains(field, "phys"), strings.Contains(field, "hw_addr"):
		return "02:00:00:00:00:07"
	case strings.Contains(field, "network"), strings.Contains(field, "prefix"), strings.Contains(field, "subnet"):
		return "10.7.0.0/16"
	case strings.Contains(field, "ip"), strings.Contains(field, "addr"), strings.Contains(field, "gw"):
		return "10.7.0.1"
	case strings.Contains(field, "name"), strings.Contains(field, "interface"):
		return "a7"
	}
	return "0x1: 'no' #yes"
}
