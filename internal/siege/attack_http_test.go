package siege

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"time"
)

// idle opens 300 connections, of which some send a header very slowly and the others nothing.
func idle(ctx context.Context, t *target) error {
	const many = 300
	conns := make([]net.Conn, many)
	defer func() {
		for _, c := range conns {
			if c != nil {
				c.Close()
			}
		}
	}()
	return t.every(ctx, time.Second, func(int) error {
		for i, c := range conns {
			if c == nil {
				conns[i] = t.begin(ctx, i%3 == 0)
				continue
			}
			if i%3 != 0 {
				continue
			}
			if _, err := fmt.Fprintf(c, "X-%d: y\r\n", i); err != nil { // it was closed: a new one comes with the next strike
				c.Close()
				conns[i] = nil
			}
		}
		return nil
	})
}

// begin opens a connection and perhaps sends the first line of a request.
func (t *target) begin(ctx context.Context, speak bool) net.Conn {
	if !speak {
		return t.connect(ctx)
	}
	c := t.dial(ctx)
	if c != nil {
		_, _ = fmt.Fprintf(c, "POST /scheduler/plan HTTP/1.1\r\n") // a refusal shows with the next line
	}
	return c
}

// unread asks for large answers, and does not read them.
func unread(ctx context.Context, t *target) error {
	plan := planOf(20_000)
	requests := []string{
		"GET /scheduler/graph?format=raw HTTP/1.1\r\nHost: localhost\r\n\r\n",
		"GET /scheduler/graph-snapshot HTTP/1.1\r\nHost: localhost\r\n\r\n",
		"GET /scheduler/txn-history HTTP/1.1\r\nHost: localhost\r\n\r\n",
		"GET /scheduler/status HTTP/1.1\r\nHost: localhost\r\n\r\n",
		fmt.Sprintf("POST /scheduler/plan HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n\r\n%s", len(plan), plan),
	}
	var conns []net.Conn
	defer func() {
		for _, c := range conns {
			c.Close()
		}
	}()
	return t.every(ctx, 2*time.Second, func(n int) error {
		for i := range requests {
			c := t.dial(ctx)
			if c == nil {
				continue
			}
			_ = c.(*net.TCPConn).SetReadBuffer(1024) // as small as the kernel allows
			_ = c.SetWriteDeadline(time.Now().Add(time.Second))
			_, _ = fmt.Fprint(c, requests[(n+i)%len(requests)])
			conns = append(conns, c)
		}
		for len(conns) > 40 {
			conns[0].Close()
			conns = conns[1:]
		}
		return nil
	})
}

// planOf is a body with many items.
func planOf(items int) []byte {
	values := map[string]json.RawMessage{}
	for i := range items {
		it := dummy(fmt.Sprintf("plan%d", i), `,"enabled":true`)
		values[it.key] = json.RawMessage(it.value)
	}
	return documentOf(values)
}

// largestPlan is about the largest plan that the agent does not refuse.
func (t *target) largestPlan(ctx context.Context) []byte {
	for items := 50_000; ; items -= items / 20 {
		plan := planOf(items)
		if t.post(ctx, "/scheduler/plan?format=text", bytes.NewReader(plan)) != http.StatusRequestEntityTooLarge {
			return plan
		}
	}
}

// expensive asks for what costs the agent most, on many connections at once.
func expensive(ctx context.Context, t *target) error {
	flags := "/scheduler/flag-stats?flag=last-update"
	for i := range 5000 {
		flags += fmt.Sprintf("&prefix=config/linux/%d", i)
	}
	pages := []string{
		flags, "/scheduler/flag-stats?flag=value-state" + strings.Repeat("&prefix=config/", 20_000), "/scheduler/graph", "/scheduler/graph?format=png",
		"/scheduler/dump?view=cached&key-prefix=" + linux(""), "/scheduler/txn-history?format=text", "/scheduler/status", "/sources", "/scheduler/dump?key-prefix=" + linux(""),
		"/scheduler/explain?key=" + linux(strings.Repeat("k", 500_000)), "/scheduler/key-timeline?key=" + linux("a1"), "/" + strings.Repeat("p", 900_000),
	}
	refused := planOf(50_000)
	accepted := t.largestPlan(ctx)
	worker := func(first int) func() error {
		return func() error {
			return t.every(ctx, 200*time.Millisecond, func(n int) error {
				switch n += first; n % 8 {
				case 0:
					t.post(ctx, "/scheduler/plan?format=text", bytes.NewReader(accepted))
				case 2:
					t.post(ctx, "/scheduler/plan?format=text", bytes.NewReader(refused))
				case 4:
					t.post(ctx, "/scheduler/downstream-resync?verbose=1", bytes.NewReader(nil))
				default:
					t.get(ctx, pages[n%len(pages)])
				}
				return nil
			})
		}
	}
	return together(worker(0), worker(1), worker(2), worker(3), worker(4), worker(5))
}

// dumps asks for what the agent must read from VPP and the kernel, on many connections at
// once. Half of the clients leave, or do not read the answer.
func dumps(ctx context.Context, t *target) error {
	vpp := []string{
		"abf", "acl/ip", "acl/macip", "interfaces", "interfaces/loopback", "interfaces/tap", "nat/global", "nat/dnat", "nat/interfaces", "nat/pools", "bd", "fib", "xc",
		"routes", "arps", "proxyarp/interfaces", "proxyarp/ranges", "ipscanneigh", "vrrps", "ipsec/spds", "ipsec/sps", "ipsec/sas", "punt/sockets", "wireguard/peers",
	}
	paths := []string{"/dump/linux/v2/interfaces", "/dump/linux/v2/routes", "/dump/linux/v2/arps", "/drift", "/scheduler/dump?key-prefix=" + plane(""), "/scheduler/dump?key-prefix=" + linux("")}
	for _, p := range vpp {
		paths = append(paths, "/dump/vpp/v2/"+p)
	}
	reader := func(first int) func() error {
		return func() error {
			return t.every(ctx, 200*time.Millisecond, func(n int) error {
				soon, cancel := context.WithTimeout(ctx, time.Duration(1+(n+first)%3)*time.Second)
				defer cancel()
				t.get(soon, paths[(n+first*7)%len(paths)])
				return nil
			})
		}
	}
	unread := func() error {
		var conns []net.Conn
		defer func() {
			for _, c := range conns {
				c.Close()
			}
		}()
		return t.every(ctx, time.Second, func(n int) error {
			c := t.dial(ctx)
			if c == nil {
				return nil
			}
			_, _ = fmt.Fprintf(c, "GET %s HTTP/1.1\r\nHost: localhost\r\n\r\n", paths[n%len(paths)]) // it may be closed
			if conns = append(conns, c); len(conns) > 10 {
				conns[0].Close()
				conns = conns[1:]
			}
			return nil
		})
	}
	return together(reader(0), reader(1), reader(2), reader(3), unread)
}

// unencrypted speaks without TLS to servers that expect it, as fast as they take connections.
func unencrypted(ctx context.Context, t *target) error {
	worker := func(address string) func() error {
		return func() error {
			return t.every(ctx, time.Second, func(int) error {
				for range 500 {
					c, err := (&net.Dialer{Timeout: time.Second}).DialContext(ctx, "tcp", address)
					if err != nil {
						return nil // the next second is as good
					}
					_, _ = fmt.Fprint(c, "GET / HTTP/1.1\r\nHost: localhost\r\n\r\n") // a refusal is the answer
					_, _ = io.Copy(io.Discard, io.LimitReader(c, 1024))
					c.Close()
				}
				return nil
			})
		}
	}
	return together(worker(t.web), worker(t.web), worker(t.calls), worker(t.calls))
}

// heldRequests send the largest header that is allowed, and most of a body, and go on for ever.
func heldRequests(ctx context.Context, t *target) error {
	header, body := strings.Repeat("h", 15_000), make([]byte, 1<<20)
	return t.hold(ctx, func(soon context.Context, by *http.Client, n int) io.ReadCloser {
		request, err := http.NewRequestWithContext(soon, http.MethodPost, t.address(t.web, "/scheduler/plan"), unfinished{bytes.NewReader(body), soon})
		if err != nil {
			t.Error(err) // a mistake of the attack
			return nil
		}
		request.Header.Set("X-Long", fmt.Sprint(n, header))
		answer, err := by.Do(request)
		if err != nil {
			return nil
		}
		return answer.Body
	})
}
