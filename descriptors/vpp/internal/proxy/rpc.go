package proxy

import (
	"bufio"
	"encoding/gob"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/rpc"
	"reflect"
	"sync"

	"github.com/keyplane/keyplane/internal/guard"
)

// connected is the answer to CONNECT after which net/rpc's client begins its calls.
const connected = "HTTP/1.0 200 Connected to Go RPC\n\n"

// Methods are the functions that a client may call, by the name of service and method.
type Methods map[string]method

// A method reads its argument and returns the rest of the call, which may block.
type method func(in *gob.Decoder) (call func() (any, error), err error)

// methodOf returns the method that calls f.
func methodOf[A, R any](f func(A) (R, error)) method {
	return func(in *gob.Decoder) (func() (any, error), error) {
		var argument A
		if err := in.Decode(&argument); err != nil {
			return nil, err
		}
		return func() (any, error) { return f(argument) }, nil
	}
}

// ServeHTTP takes over the connection of a CONNECT request, and serves calls until the client
// disconnects.
func (m Methods) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodConnect {
		w.Header().Set("Allow", http.MethodConnect)
		http.Error(w, "expected method CONNECT", http.StatusMethodNotAllowed)
		return
	}
	conn, _, err := http.NewResponseController(w).Hijack()
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	defer conn.Close()
	if _, err := io.WriteString(conn, connected); err == nil {
		_ = m.serve(conn) // an error ends the connection, which tells the client
	}
}

// serve answers calls until the connection ends or a call is unreadable. Calls run at once: one
// that waits for a reply of VPP must not delay the others. It returns after all calls have ended.
func (m Methods) serve(conn io.ReadWriteCloser) error {
	in, out := gob.NewDecoder(bufio.NewReader(conn)), newAnswers(conn)
	var calls sync.WaitGroup
	defer calls.Wait()
	for {
		var request rpc.Request
		if err := in.Decode(&request); err != nil {
			return endOf(err)
		}
		method := m[request.ServiceMethod]
		if method == nil {
			if err := in.DecodeValue(reflect.Value{}); err != nil { // skip the argument
				return endOf(err)
			}
			out.send(request, nil, fmt.Errorf("rpc: can't find method %s", request.ServiceMethod))
			continue
		}
		call, err := method(in)
		if err != nil {
			return endOf(err)
		}
		calls.Go(func() {
			var result any
			err := guard.Run(func() (err error) {
				result, err = call()
				return err
			})
			out.send(request, result, err)
		})
	}
}

// endOf returns nil if err means that the client has disconnected between two calls.
func endOf(err error) error {
	if errors.Is(err, io.EOF) {
		return nil
	}
	return err
}

// answers writes the answers of calls that end at any time.
type answers struct {
	mu     sync.Mutex // guards all below
	conn   io.Closer
	buffer *bufio.Writer
	gob    *gob.Encoder
}

// newAnswers returns answers that are written to conn.
func newAnswers(conn io.WriteCloser) *answers {
	buffer := bufio.NewWriter(conn)
	return &answers{conn: conn, buffer: buffer, gob: gob.NewEncoder(buffer)}
}

// send answers a call. If that fails it closes the connection, because the client would wait
// for the rest of the answer; the loop that reads calls ends then.
func (a *answers) send(request rpc.Request, result any, err error) {
	answer := rpc.Response{ServiceMethod: request.ServiceMethod, Seq: request.Seq}
	if err != nil {
		answer.Error = err.Error()
		result = struct{}{} // clients expect a result, and skip it
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if errors.Join(a.gob.Encode(answer), a.gob.Encode(result), a.buffer.Flush()) != nil {
		_ = a.conn.Close()
	}
}
