package microservice

import (
	"context"
	"errors"
	"io/fs"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/keyplane/keyplane/internal/fakeengine"
	"github.com/keyplane/keyplane/internal/scratch"
	"github.com/keyplane/keyplane/internal/testkit"
	"github.com/keyplane/keyplane/scheduler/conformance"
)

func TestMain(m *testing.M) { os.Exit(scratch.Main(m.Run)) }

// newTracker returns a Tracker without a scheduler.
func newTracker(t *testing.T, host string) *Tracker {
	t.Helper()
	tracker, err := New(Options{Engine: host, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	return tracker
}

// withEngine returns a Tracker and the engine that it asks.
func withEngine(t *testing.T) (*Tracker, *fakeengine.Engine) {
	t.Helper()
	testkit.Netns(t)
	path := filepath.Join(t.TempDir(), "docker.sock")
	engine, err := fakeengine.Start(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(engine.Close)
	return newTracker(t, "unix://"+path), engine
}

// labels lists the containers and returns the labels that Retrieve finds.
func labels(t *testing.T, tracker *Tracker) (out []string) {
	t.Helper()
	for f, err := range conformance.Taken(tracker.retrieve(t.Context(), nil)) {
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, f.Key)
	}
	return out
}

func TestLabels(t *testing.T) {
	tracker, engine := withEngine(t)
	run := func(id string, err error) string {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return id
	}
	web := run(engine.Run("PATH=/bin", "MICROSERVICE_LABEL=web"))
	run(engine.Run("MICROSERVICE_LABEL=", "MICROSERVICE_LABELS=x"))
	run(engine.RunLabelled("MICROSERVICE_LABEL", "db"))
	run(engine.RunLabelled("other", "y"))
	if got, want := labels(t, tracker), []string{"linux/microservice/db", "linux/microservice/web"}; !slices.Equal(got, want) {
		t.Errorf("obtained %v, want %v", got, want)
	}
	inspected := engine.Inspected()
	labels(t, tracker)
	if engine.Inspected() != inspected {
		t.Error("containers were inspected again")
	}
	if path := tracker.Path("web"); path == "" || tracker.Path("x") != "" {
		t.Errorf("web is at %q, x at %q", path, tracker.Path("x"))
	}
	if err := engine.Kill(web); err != nil {
		t.Fatal(err)
	}
	if got, want := labels(t, tracker), []string{"linux/microservice/db"}; !slices.Equal(got, want) || tracker.Path("web") != "" {
		t.Errorf("obtained %v, want %v; web is at %q", got, want, tracker.Path("web"))
	}
}

// The end of a container is an event that passes the filter, also that of podman.
func TestEvents(t *testing.T) {
	for name, prepare := range map[string]func(*fakeengine.Engine){"Docker": func(*fakeengine.Engine) {}, "podman": (*fakeengine.Engine).LikePodman} {
		t.Run(name, func(t *testing.T) {
			tracker, engine := withEngine(t)
			prepare(engine)
			changed := make(chan struct{})
			ctx, cancel := context.WithCancel(t.Context())
			ended := make(chan error)
			go func() { ended <- tracker.engine.follow(ctx, func() { changed <- struct{}{} }) }()
			next := func(what string) {
				t.Helper()
				select {
				case <-changed:
				case <-time.After(testkit.Patience):
					t.Fatalf("no event after %s", what)
				}
			}
			next("the connection")
			id, err := engine.Run()
			if err != nil {
				t.Fatal(err)
			}
			next("the start of a container")
			if err := engine.Kill(id); err != nil {
				t.Fatal(err)
			}
			next("the end of a container")
			cancel()
			<-ended
		})
	}
}

// Without an engine it is unknown which containers there are. Those that are known stay while it is down.
func TestEngineDown(t *testing.T) {
	unreadable(t, newTracker(t, "unix:///nonexistent/docker.sock"))
	tracker, engine := withEngine(t)
	for _, label := range []string{"a", "b"} {
		if _, err := engine.Run("MICROSERVICE_LABEL=" + label); err != nil {
			t.Fatal(err)
		}
	}
	if before := labels(t, tracker); len(before) != 2 {
		t.Fatalf("obtained %v", before)
	}
	a, b := tracker.Path("a"), tracker.Path("b")
	engine.Stop()
	unreadable(t, tracker)
	if a == "" || tracker.Path("a") != a || tracker.Path("b") != b {
		t.Errorf("they are at %q and %q, before at %q and %q", tracker.Path("a"), tracker.Path("b"), a, b)
	}
	engine.Close()
	unreadable(t, tracker)
	if tracker.Path("a") != "" || tracker.Path("b") != "" {
		t.Errorf("the processes have ended, but are at %q and %q", tracker.Path("a"), tracker.Path("b"))
	}
}

// unreadable checks that Retrieve says that it cannot list the containers.
func unreadable(t *testing.T, tracker *Tracker) {
	t.Helper()
	for f, err := range conformance.Taken(tracker.retrieve(t.Context(), nil)) {
		if err == nil {
			t.Errorf("obtained %s from an engine that does not answer", f.Key)
		}
	}
}

// The engine sends no event when it could answer again, so the listing is repeated.
func TestFailedListingIsRepeated(t *testing.T) {
	tracker, engine := withEngine(t)
	if _, err := engine.Run("MICROSERVICE_LABEL=web"); err != nil {
		t.Fatal(err)
	}
	engine.FailInspections(2)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error)
	go func() { ended <- tracker.Run(ctx) }()
	late, again := time.After(testkit.Patience), time.NewTicker(time.Millisecond)
	defer again.Stop()
	for tracker.Path("web") == "" {
		select {
		case <-again.C:
		case <-late:
			t.Fatalf("the container is not found; %d inspections", engine.Inspected())
		}
	}
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

// An engine that refuses, or sends something else, fails the listing. No container counts as gone for it.
func TestBadAnswers(t *testing.T) {
	for name, answer := range map[string]http.HandlerFunc{
		"refused":  func(w http.ResponseWriter, _ *http.Request) { http.Error(w, `{"message": "no"}`, http.StatusForbidden) },
		"not JSON": func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("<html>")) },
		"cut":      func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte(`[{"Id": "1"`)) },
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "docker.sock")
			socket, err := net.Listen("unix", path)
			if err != nil {
				t.Fatal(err)
			}
			server := &http.Server{Handler: answer}
			go func() { _ = server.Serve(socket) }()
			t.Cleanup(func() { _ = server.Close() })
			tracker := newTracker(t, "unix://"+path)
			_, failed := tracker.list(t.Context(), true)
			if failed == nil || name == "refused" != errors.Is(failed, errRefused) {
				t.Errorf("the error is %v", failed)
			}
			const living = "/proc/self/ns/net"
			ns, err := tracker.opts.Host.Stat(living)
			if err != nil {
				t.Fatal(err)
			}
			tracker.obtained["known"] = container{path: living, ns: ns}
			unreadable(t, tracker)
			if tracker.Path("known") != living {
				t.Errorf("known is at %q", tracker.Path("known"))
			}
		})
	}
}

func TestHosts(t *testing.T) {
	for _, host := range []string{"unix:///run/podman/podman.sock", "tcp://127.0.0.1:2375"} {
		if _, err := newEngine(host); err != nil {
			t.Error(err)
		}
	}
	for _, host := range []string{"/var/run/docker.sock", "ssh://host", "unix://", "npipe:////./pipe/docker"} {
		if _, err := newEngine(host); !errors.Is(err, errHost) {
			t.Errorf("%s: %v", host, err)
		}
	}
	// The environment may be meant for other programs.
	t.Setenv("DOCKER_HOST", "ssh://elsewhere")
	if _, err := New(Options{Log: slog.New(slog.DiscardHandler)}); err != nil {
		t.Errorf("DOCKER_HOST: %v", err)
	}
	if _, err := New(Options{Engine: "ssh://elsewhere"}); !errors.Is(err, errHost) {
		t.Errorf("configured: %v", err)
	}
}

func TestRemedies(t *testing.T) {
	for err, want := range map[error]string{
		&fs.PathError{Op: "stat", Err: syscall.EACCES}: "CAP_SYS_PTRACE",
		&fs.PathError{Op: "stat", Err: syscall.ENOENT}: "process ids",
	} {
		if got := remedyFor(err); !strings.Contains(got, want) {
			t.Errorf("%v: %q; expected %s", err, got, want)
		}
	}
}
