package session

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"testing"

	"github.com/keyplane/keyplane/internal/bounded"
)

// What listens at the address of the agent sends answers without an end.
func TestAnswersAreBounded(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, err := io.WriteString(w, `"`)
		for text := bytes.Repeat([]byte("x"), 1<<20); err == nil; {
			_, err = w.Write(text)
		}
	}))
	defer server.Close()
	at, err := url.Parse(server.URL)
	if err != nil {
		t.Fatal(err)
	}
	s := loaded(t, "--http-port", at.Port())
	client, err := s.agent(t.Context())
	if err != nil || client.most != mostAnswer {
		t.Fatalf("the client reads %d bytes, %v; expected %d", client.most, err, mostAnswer)
	}
	client.most = 4 << 20
	defer s.reach(t.Context(), client)()
	var text string
	var value any
	for name, into := range map[string]any{"text": &text, "JSON": &value} {
		if err := s.Get(t.Context(), "/", nil, into); !errors.Is(err, bounded.ErrTooLarge) {
			t.Errorf("%s: %v; expected %v", name, err, bounded.ErrTooLarge)
		}
	}
}
