package conns

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"testing"

	"golang.org/x/net/http2"
)

// A request in progress is answered after the end has begun, and then nobody listens.
func TestServeEndsInOrder(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	arrived, ending := make(chan struct{}), make(chan struct{})
	web := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		close(arrived)
		<-ending
		_, _ = io.WriteString(w, "done")
	})}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- Serve(ctx, web, l, func() { close(ending) }) }()
	go func() { <-arrived; cancel() }()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+l.Addr().String(), http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	if text, err := io.ReadAll(answer.Body); string(text) != "done" || err != nil {
		t.Errorf("answer %q, %v; want done", text, err)
	}
	if err := <-ended; err != nil {
		t.Errorf("the end returned %v", err)
	}
	if c, err := net.Dial("tcp", l.Addr().String()); err == nil {
		c.Close()
		t.Error("the address still accepts connections")
	}
}

func TestServeReturnsTheFaultOfItsListener(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	l.Close()
	if err := Serve(t.Context(), &http.Server{}, l, nil); !errors.Is(err, net.ErrClosed) {
		t.Errorf("got %v, want that the listener is closed", err)
	}
}

// A connection of HTTP/2 tells its client what it takes at once: a short frame.
func TestFramesAreShort(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	web := &http.Server{Protocols: new(http.Protocols)}
	web.Protocols.SetUnencryptedHTTP2(true)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- Serve(ctx, web, l, nil) }()
	defer func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}()
	c, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if _, err := io.WriteString(c, http2.ClientPreface); err != nil {
		t.Fatal(err)
	}
	framer := http2.NewFramer(c, c)
	if err := framer.WriteSettings(); err != nil {
		t.Fatal(err)
	}
	frame, err := framer.ReadFrame()
	if err != nil {
		t.Fatal(err)
	}
	settings, is := frame.(*http2.SettingsFrame)
	if !is {
		t.Fatalf("the first frame is %v, want settings", frame)
	}
	if size, _ := settings.Value(http2.SettingMaxFrameSize); size != maxFrame {
		t.Errorf("frames may have %d bytes, want %d", size, maxFrame)
	}
}
