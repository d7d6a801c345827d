package proxy

import (
	"bytes"
	"errors"
	"net/http"
	"net/http/httptest"
	"net/rpc"
	"strings"
	"testing"
)

type sum struct{ A, B int }

// calculator has a method that waits for a call of another one, and one that panics.
func calculator() Methods {
	released := make(chan struct{})
	return Methods{
		"Sum.Add":     methodOf(func(q sum) (int, error) { return q.A + q.B, nil }),
		"Sum.Fail":    methodOf(func(sum) (int, error) { return 0, errors.New("no sum today") }),
		"Sum.Unknown": methodOf(func(sum) (chan int, error) { return nil, nil }),
		"Sum.Panic":   methodOf(func(sum) (int, error) { panic("a bug") }),
		"Sum.Wait":    methodOf(func(sum) (string, error) { <-released; return "released", nil }),
		"Sum.Release": methodOf(func(sum) (bool, error) { close(released); return true, nil }),
	}
}

// TestCalls has the client of net/rpc call all kinds of methods on one connection.
func TestCalls(t *testing.T) {
	server := httptest.NewServer(calculator())
	defer server.Close()
	client, err := rpc.DialHTTP("tcp", strings.TrimPrefix(server.URL, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	var text string
	waiting := client.Go("Sum.Wait", sum{}, &text, nil)
	for _, test := range []struct {
		method, err string
		want        int
	}{
		{"Sum.Add", "", 5},
		{"Sum.Fail", "no sum today", 0},
		{"Sum.Panic", "internal error of the agent: panic: a bug", 0},
		{"Sum.Subtract", "rpc: can't find method Sum.Subtract", 0},
		{"Sum.Add", "", 5}, // errors do not end the connection
	} {
		var got int
		switch err := client.Call(test.method, sum{2, 3}, &got); {
		case test.err != "" && (err == nil || err.Error() != test.err):
			t.Errorf("%s: %v, want %s", test.method, err, test.err)
		case test.err == "" && (err != nil || got != test.want):
			t.Errorf("%s: %d, %v, want %d", test.method, got, err, test.want)
		}
	}
	// A call that waits has delayed none of the others.
	if err := client.Call("Sum.Release", sum{}, new(bool)); err != nil {
		t.Fatal(err)
	}
	if <-waiting.Done; waiting.Error != nil || text != "released" {
		t.Errorf("the call that waited: %q, %v", text, waiting.Error)
	}
	if err := client.Call("Sum.Unknown", sum{}, new(int)); err == nil {
		t.Error("a result that cannot be written: the call has succeeded")
	}
}

// TestOtherMethods has a request that is no CONNECT.
func TestOtherMethods(t *testing.T) {
	w := httptest.NewRecorder()
	calculator().ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/", nil))
	if w.Code != http.StatusMethodNotAllowed || w.Header().Get("Allow") != http.MethodConnect {
		t.Errorf("got %d %v", w.Code, w.Header())
	}
}

// FuzzServe has any bytes from a client. They end the connection, and never the process.
func FuzzServe(f *testing.F) {
	f.Add(requestOf(f, "Sum.Add", sum{1, 2}))
	f.Add(requestOf(f, "Sum.Subtract", sum{1, 2}))
	f.Add(requestOf(f, "Sum.Add", "a text"))
	f.Add([]byte("GET / HTTP/1.0\r\n\r\n"))
	f.Fuzz(func(_ *testing.T, data []byte) {
		m := Methods{"Sum.Add": methodOf(func(q sum) (int, error) { return q.A + q.B, nil })}
		_ = m.serve(client{bytes.NewBuffer(data)})
	})
}

// A client has written all its calls already, and ignores the answers.
type client struct{ *bytes.Buffer }

func (client) Write(p []byte) (int, error) { return len(p), nil }
func (client) Close() error                { return nil }

// A buffer keeps everything that is written.
type buffer struct{ *bytes.Buffer }

func (buffer) Close() error { return nil }

// requestOf returns the bytes with which a client calls a method.
func requestOf(f *testing.F, method string, argument any) []byte {
	f.Helper()
	var out bytes.Buffer
	a := newAnswers(buffer{&out})
	if err := errors.Join(a.gob.Encode(rpc.Request{ServiceMethod: method, Seq: 1}), a.gob.Encode(argument), a.buffer.Flush()); err != nil {
		f.Fatal(err)
	}
	return out.Bytes()
}
