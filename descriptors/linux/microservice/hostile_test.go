package microservice

import (
	"bytes"
	"context"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"testing"

	"github.com/keyplane/keyplane/internal/testkit"
)

// says is an engine that has the same answer to each request.
type says struct {
	status int
	body   io.Reader
}

func (s says) RoundTrip(r *http.Request) (*http.Response, error) {
	return &http.Response{StatusCode: s.status, Body: io.NopCloser(s.body), Request: r, Header: http.Header{}}, nil
}

// asking is an engine's client that gets this answer.
func asking(t *testing.T, answer http.RoundTripper) *engine {
	t.Helper()
	e, err := newEngine("tcp://engine:1")
	if err != nil {
		t.Fatal(err)
	}
	e.client = &http.Client{Transport: answer}
	return e
}

// An endless text is one that never ends.
type endless string

func (e endless) Read(p []byte) (int, error) { return copy(p, e), nil }

func TestEndlessEvent(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), testkit.Patience)
	defer cancel()
	many := strings.Repeat(`{"Type":"container"}`+"\n", 2*maxEvent/20) // more than one event may have together
	read := &io.LimitedReader{R: io.MultiReader(strings.NewReader(many+`{"x":"`), endless(strings.Repeat("a", 4096))), N: 64 << 20}
	seen := 0
	err := asking(t, says{http.StatusOK, read}).follow(ctx, func() { seen++ })
	if !errors.Is(err, errEvent) || read.N < 32<<20 {
		t.Errorf("read %d bytes: %v, want %v soon", 64<<20-read.N, err, errEvent)
	}
	if want := 1 + strings.Count(many, "\n"); seen != want {
		t.Errorf("saw %d changes, want %d", seen, want)
	}
}

// TestAnswersThatAreTooLarge: an engine cannot fill the memory. Each answer ends at a bound,
// and is small in memory until then.
func TestAnswersThatAreTooLarge(t *testing.T) {
	for name, text := range map[string]string{
		"endless containers":      strings.Repeat(`{},`, 1000),
		"endless space":           strings.Repeat(" ", 1000),
		"endless labels":          `{"Labels":{` + strings.Repeat(`"":"",`, 2*maxContainer),
		"one container is large":  `{"Labels":{"x":"` + strings.Repeat("x", maxContainer) + `"}},`,
		"containers of some size": `{"Id":"` + strings.Repeat("x", maxContainer/2) + `"},`,
	} {
		const all = 256 << 20
		read := &io.LimitedReader{R: io.MultiReader(strings.NewReader("["), &again{text: text}), N: all}
		_, err := asking(t, says{http.StatusOK, read}).list(t.Context())
		if !errors.Is(err, errAnswer) || all-read.N > 2*maxListing {
			t.Errorf("%s: read %d bytes: %v, want %v soon", name, all-read.N, err, errAnswer)
		}
	}
	env := `{"Config":{"Env":[` + strings.Repeat(`"",`, maxContainer)
	if _, _, err := asking(t, says{http.StatusOK, strings.NewReader(env)}).inspect(t.Context(), "a"); !errors.Is(err, errAnswer) {
		t.Errorf("an environment without end: %v, want %v", err, errAnswer)
	}
}

// again is a text again and again.
type again struct {
	text string
	at   int
}

func (a *again) Read(p []byte) (int, error) {
	n := copy(p, a.text[a.at:])
	a.at = (a.at + n) % len(a.text)
	return n, nil
}

// FuzzAnswers has a tracker take any answer as listing, as container and as events.
func FuzzAnswers(f *testing.F) {
	for _, text := range []string{
		`[{"Id":"a","Labels":{"KSR_LABEL":"x"}}]`, `{"State":{"Running":true,"Pid":1},"Config":{"Env":["MICROSERVICE_LABEL=a"]}}`,
		`{"Type":"container","Action":"die"}` + "\n{}", `{"message":"no such container"}`, `null`, `[null]`, `[{"Id":"../../x"}]`,
		`{"State":{"Running":true,"Pid":-1},"Config":{"Env":["MICROSERVICE_LABEL=\u0000/","="]}}`, `[{"Labels":[]}]`, `{"State":{"Pid":1e99}}`,
	} {
		f.Add(http.StatusOK, []byte(text))
		f.Add(http.StatusNotFound, []byte(text))
	}
	f.Fuzz(func(t *testing.T, status int, said []byte) {
		e := asking(t, answers(func() says { return says{status, bytes.NewReader(said)} }))
		tracker, err := New(Options{Engine: "tcp://engine:1", Log: slog.New(slog.DiscardHandler)})
		if err != nil {
			t.Fatal(err)
		}
		tracker.engine = e
		_, listErr := e.list(t.Context())
		_, there, err := e.inspect(t.Context(), string(said))
		if there && err != nil || status != http.StatusOK && (listErr == nil || there) {
			t.Errorf("status %d: list: %v, inspect: %t, %v", status, listErr, there, err)
		}
		if e.follow(t.Context(), func() {}) == nil {
			t.Error("the events ended without an error")
		}
		if c, err := tracker.identify(t.Context(), listed{ID: string(said)}); err == nil && c.label != "" && c.path == "" && c.ns != (container{}).ns {
			t.Errorf("a namespace without a path: %+v", c)
		}
	})
}

// answers makes the answer to each request.
type answers func() says

func (a answers) RoundTrip(r *http.Request) (*http.Response, error) { return a().RoundTrip(r) }
