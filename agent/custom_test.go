package agent

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"iter"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/collectors"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	testgrpc "google.golang.org/grpc/interop/grpc_testing"
	"google.golang.org/protobuf/types/known/sourcecontextpb"

	"github.com/keyplane/keyplane/internal/reach"
	"github.com/keyplane/keyplane/internal/testkit"
	"github.com/keyplane/keyplane/kvdbsync"
	"github.com/keyplane/keyplane/models"
	"github.com/keyplane/keyplane/orchestrator"
	"github.com/keyplane/keyplane/orchestrator/trial"
	"github.com/keyplane/keyplane/scheduler"
)

// A note is a model of another program: of a message that each program has.
func noteModel() models.Of[*sourcecontextpb.SourceContext] {
	return models.Define[*sourcecontextpb.SourceContext](models.Definition{
		Module: "acme.notes", Version: "v1", Type: "note", NameTemplate: "{{.FileName}}", Field: "notes",
	})
}

// noteKey is the key of a note.
func noteKey(name string) string { return "config/acme/notes/v1/note/" + name }

// notes registers a descriptor that reports each created note.
func notes(created chan<- string) Addition {
	return func(p Parts) ([]Task, error) {
		_, err := scheduler.Register(p.Scheduler, scheduler.Descriptor[*sourcecontextpb.SourceContext, struct{}]{
			Name: "acme-note", Model: noteModel(),
			Create: func(_ context.Context, key string, v *sourcecontextpb.SourceContext) (struct{}, error) {
				created <- v.GetFileName()
				return struct{}{}, nil
			},
			Delete: func(context.Context, string, *sourcecontextpb.SourceContext, struct{}) error { return nil },
		})
		return nil, err
	}
}

// pen is a northbound that declares one note.
func pen(name string, declared chan<- error) Addition {
	return func(p Parts) ([]Task, error) {
		return []Task{{"pen", func(ctx context.Context) error {
			declared <- p.Client.Put(ctx, &sourcecontextpb.SourceContext{FileName: name})
			return nil
		}}}, nil
	}
}

// A shelf is a store with constant content.
type shelf []kvdbsync.Event

func (s shelf) Watch(ctx context.Context, _ string) iter.Seq2[kvdbsync.Batch, error] {
	return func(yield func(kvdbsync.Batch, error) bool) {
		if yield(kvdbsync.Batch{Events: s, Synced: true}, nil) {
			<-ctx.Done()
		}
	}
}

// bare are options of an agent that touches neither the network nor folders of the system.
func bare(t *testing.T, args ...string) Options {
	t.Helper()
	dir := t.TempDir()
	writeFile(t, filepath.Join(dir, "orchestrator.conf"), `state-dir: ""`)
	return Options{
		Without: []Part{Linux, VPP, HTTP, GRPC},
		Args:    append([]string{"-config-dir=" + dir, "-socket=" + filepath.Join(dir, "socket"), "-microservice-label=" + ownLabel(t)}, args...),
		Stdout:  testkit.Log(t), Stderr: testkit.Log(t),
	}
}

// ownLabel returns a label for this test alone: agents of one label exclude each other.
func ownLabel(t *testing.T) string {
	return fmt.Sprintf("%s-%d", strings.ReplaceAll(t.Name(), "/", "-"), os.Getpid())
}

func writeFile(t *testing.T, path, content string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
}

// started runs an agent until the test ends.
func started(t *testing.T, o Options) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- Run(ctx, o) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
}

// A model of another program is fed from a file in both forms, from a store of that program,
// and from its northbound, beside a flag of its own.
func TestAgentWithAdditions(t *testing.T) {
	created := make(chan string, 10)
	o := bare(t, "-shelf-note=of-the-shelf")
	files := t.TempDir()
	writeFile(t, filepath.Join(files, "form.yaml"), "acmeConfig:\n  notes: [{file_name: of-the-form}]\n")
	writeFile(t, filepath.Join(files, "pairs.yaml"), "data: [{key: "+noteKey("of-the-pairs")+", value: {file_name: of-the-pairs}}]\n")
	writeFile(t, filepath.Join(strings.TrimPrefix(o.Args[0], "-config-dir="), "filedb.conf"), "configuration-paths: ["+files+"]")

	var note string
	o.Models = []*models.Model{noteModel().Model}
	o.Flags = func(f *flag.FlagSet) { f.StringVar(&note, "shelf-note", "", "`NAME` of the note on the shelf") }
	o.Stores = []StoreKind{{Name: "shelf", Priority: 7, Open: func(so StoreOptions) (kvdbsync.Connector, error) {
		return shelf{{Key: so.Root + noteKey(note), Value: []byte(`{"file_name":"` + note + `"}`)}}, nil
	}}}
	o.Descriptors = []Addition{notes(created)}
	declared := make(chan error, 1)
	o.Northbounds = []Addition{pen("of-the-pen", declared)}
	started(t, o)

	var got []string
	for range 4 {
		got = append(got, <-created)
	}
	if err := <-declared; err != nil {
		t.Error(err)
	}
	slices.Sort(got)
	if want := []string{"of-the-form", "of-the-pairs", "of-the-pen", "of-the-shelf"}; !slices.Equal(got, want) {
		t.Errorf("created %q, want %q", got, want)
	}
}

// A program keeps keys of its own in a store of the agent, and serves a path of HTTP and a service of gRPC.
func TestProgramWithKeysAPathAndAService(t *testing.T) {
	o := bare(t)
	o.Without = []Part{Linux, VPP, HTTP}
	dir := strings.TrimPrefix(o.Args[0], "-config-dir=")
	writeFile(t, filepath.Join(dir, "bolt.conf"), "db-path: "+dir+"/bolt.db")
	writeFile(t, filepath.Join(dir, "grpc.conf"), "network: unix\nendpoint: "+dir+"/grpc.sock")
	seen := make(chan string, 10)
	o.Northbounds = []Addition{func(p Parts) ([]Task, error) {
		p.ServeHTTP(Path{Path: "/acme/hello", About: "a greeting", Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, `"hello"`) })})
		p.ServeGRPC(func(to grpc.ServiceRegistrar) { testgrpc.RegisterTestServiceServer(to, echo{}) })
		root := "/vnf-agent/" + p.Label + "/"
		own := kvdbsync.NewSource(kvdbsync.Options{Name: "acme", Connector: p.Stores["bolt"], Root: root, Prefix: "acme/"})
		return []Task{{"acme source", own.Run}, {"acme", func(ctx context.Context) error {
			if err := p.Stores["bolt"].(kvdbsync.Writer).Put(ctx, root+"acme/greeting", []byte("hello")); err != nil {
				return err
			}
			for {
				select {
				case <-ctx.Done():
					return nil
				case <-own.Ready():
				}
				change, _ := own.Take()
				for _, e := range change.Events {
					seen <- e.Key + "=" + string(e.Value)
				}
			}
		}}}, nil
	}}
	started(t, o)
	if got := <-seen; got != "acme/greeting=hello" {
		t.Errorf("the program sees %s", got)
	}
	conn, err := grpc.NewClient("unix:"+dir+"/grpc.sock", grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if _, err := testgrpc.NewTestServiceClient(conn).EmptyCall(t.Context(), &testgrpc.Empty{}, grpc.WaitForReady(true)); err != nil {
		t.Error(err)
	}
	socket := strings.TrimPrefix(o.Args[1], "-socket=")
	web := http.Client{Transport: &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) { return reach.Dial(ctx, socket) }}}
	answer, err := web.Get("http://agent/acme/hello")
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	if text, err := io.ReadAll(answer.Body); err != nil || string(text) != `"hello"` {
		t.Errorf("the path answers %s, %v", text, err)
	}
}

// echo is a service of a program.
type echo struct {
	testgrpc.UnimplementedTestServiceServer
}

// EmptyCall implements testgrpc.TestServiceServer.
func (echo) EmptyCall(context.Context, *testgrpc.Empty) (*testgrpc.Empty, error) {
	return &testgrpc.Empty{}, nil
}

// A program in the agent's process does not change a layer that has a trial.
func TestNorthboundDuringATrial(t *testing.T) {
	o := bare(t)
	o.Models, o.Descriptors = []*models.Model{noteModel().Model}, []Addition{notes(make(chan string, 10))}
	note := &sourcecontextpb.SourceContext{FileName: "a"}
	ended := make(chan error, 2)
	o.Northbounds = []Addition{func(p Parts) ([]Task, error) {
		return []Task{{"program", func(ctx context.Context) error {
			q := orchestrator.Request{Layer: "localclient", Values: []orchestrator.Declared{{Key: noteKey("a"), Message: note}}}
			if _, err := p.Orchestrator.trials.Try(ctx, q, time.Minute); err != nil {
				return err
			}
			ended <- p.Client.Delete(ctx, note)
			_, err := p.Orchestrator.Declare(ctx, q)
			ended <- err
			return nil
		}}}, nil
	}}
	started(t, o)
	for range 2 {
		if err := <-ended; !errors.Is(err, trial.ErrOnTrial) {
			t.Errorf("%v, want %v", err, trial.ErrOnTrial)
		}
	}
}

// An agent whose northbound declares needs no store; one without either does not start.
func TestAgentWithoutAStore(t *testing.T) {
	o := bare(t)
	if err := Run(t.Context(), o); err == nil || !strings.Contains(err.Error(), errNoStore.Error()) {
		t.Errorf("without a store and a northbound: %v", err)
	}
	created := make(chan string, 1)
	o.Models, o.Descriptors = []*models.Model{noteModel().Model}, []Addition{notes(created)}
	declared := make(chan error, 1)
	o.Northbounds = []Addition{pen("a", declared)}
	var out strings.Builder
	o.Stderr = &out
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	ended := make(chan error, 1)
	go func() { ended <- Run(ctx, o) }()
	if got := <-created; got != "a" {
		t.Errorf("created %q", got)
	}
	if err := <-declared; err != nil {
		t.Error(err)
	}
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
	if !strings.Contains(out.String(), `no store is configured; only clients declare values`) {
		t.Errorf("no warning in\n%s", &out)
	}
}

func TestMistakesOfAProgram(t *testing.T) {
	opening := func(StoreOptions) (kvdbsync.Connector, error) { return nil, nil }
	twice := func(p Parts) ([]Task, error) { return nil, p.Metrics.Register(collectors.NewGoCollector()) }
	tests := []struct {
		change func(o *Options)
		want   string
	}{
		{func(o *Options) { o.Northbounds = []Addition{twice} }, "duplicate metrics collector registration attempted"},
		{func(o *Options) {
			o.Northbounds = []Addition{func(p Parts) ([]Task, error) { p.ServeHTTP(Path{Path: "/metrics"}); return nil, nil }}
		}, `Options.Northbounds: path "/metrics": Handler is missing`},
		{func(o *Options) { o.Without = []Part{"vp"} }, `Options.Without[0] is "vp"; expected one of bolt, consul, `},
		{func(o *Options) { o.Stores = []StoreKind{{Name: "shelf"}} }, `store "shelf": Name and Open are required`},
		{func(o *Options) { o.Stores = []StoreKind{{Name: "etcd", Open: opening}} }, `store "etcd": another part has this name`},
		{func(o *Options) { o.Flags = func(f *flag.FlagSet) { f.Bool("socket", false, "") } }, "Options: flag socket exists already"},
		{func(o *Options) { o.Models = []*models.Model{noteModel().Model, noteModel().Model} }, "Options.Models: model acme.notes.note: another model has this name"},
	}
	for _, tt := range tests {
		o := bare(t)
		tt.change(&o)
		if err := Run(t.Context(), o); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("got %v\nwant %s", err, tt.want)
		}
	}
}

// The help has the flags of the program, and not those of parts that it lacks.
func TestHelpOfAProgram(t *testing.T) {
	var out strings.Builder
	o := Options{
		Name: "acme", Args: []string{"-h"}, Stdout: &out, Without: []Part{Redis, Bolt},
		Flags:  func(f *flag.FlagSet) { f.Int("rate", 7, "notes per `SECONDS`") },
		Stores: []StoreKind{{Name: "shelf", Help: "a shelf", Open: func(StoreOptions) (kvdbsync.Connector, error) { return nil, nil }}},
	}
	if err := Run(t.Context(), o); err != nil {
		t.Fatal(err)
	}
	help, idle, _ := strings.Cut(out.String(), "without effect")
	for _, want := range []string{"acme configures", "acme [flags]", "Of acme\n", "-shelf-config FILE", "a shelf (default: shelf.conf)", "-rate SECONDS", "RATE", "(default: 7)"} {
		if !strings.Contains(help, want) {
			t.Errorf("the help lacks %q", want)
		}
	}
	if strings.Contains(help, "redis-config") || !strings.Contains(idle, "-redis-config") || !strings.Contains(idle, "-bolt-config") {
		t.Errorf("the help has flags of parts that are missing:\n%s", &out)
	}
}

// A program that watches the agent over its own socket gets the end of the stream when the agent
// stops. Otherwise the stop would wait for it, and cut it off.
func TestStreamsOfTheSocketEnd(t *testing.T) {
	o := bare(t)
	o.Northbounds = []Addition{func(Parts) ([]Task, error) { return nil, nil }}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	ended := make(chan error, 1)
	go func() { ended <- Run(ctx, o) }()
	socket := strings.TrimPrefix(o.Args[1], "-socket=")
	web := http.Client{Transport: &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) { return reach.Dial(ctx, socket) }}}
	answer, err := web.Get("http://agent/events")
	for err != nil && t.Context().Err() == nil { // until the agent listens
		answer, err = web.Get("http://agent/events")
	}
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	cancel()
	if _, err := io.ReadAll(answer.Body); err != nil {
		t.Errorf("the stream ends with %v", err)
	}
	if err := <-ended; err != nil {
		t.Error(err)
	}
}
