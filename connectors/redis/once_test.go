package redis_test

import (
	"bufio"
	"fmt"
	"net"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/keyplane/keyplane/connectors/redis"
	"github.com/keyplane/keyplane/internal/testkit"
)

// forgetful is a server, and a Cluster of one, that executes SET and DEL and closes the
// connection instead of answering them.
func forgetful(t *testing.T, executed *atomic.Int32) (addr string) {
	t.Helper()
	return listening(t, func(conn net.Conn) {
		host, port, _ := net.SplitHostPort(conn.LocalAddr().String())
		says := answers{"COMMAND": {"*0\r\n"}, "CLUSTER": {"*1\r\n*3\r\n:0\r\n:16383\r\n*2\r\n" + bulk(host) + fmt.Sprintf(":%s\r\n", port)}}
		in := bufio.NewReader(conn)
		for {
			command, err := readCommand(in)
			if err != nil {
				return
			}
			if name := strings.ToUpper(command[0]); name == "SET" || name == "DEL" {
				executed.Add(1)
				return
			}
			if _, err := conn.Write([]byte(says.answer(command)[0])); err != nil {
				return
			}
		}
	})
}

// A write whose answer was lost is not repeated: another client may have written since.
func TestAWriteIsNotRepeated(t *testing.T) {
	t.Parallel()
	for name, config := range map[string]func(addr string) redis.Config{
		"server": func(addr string) redis.Config { return redis.Config{ReadTimeout: testkit.Patience, Endpoint: addr} },
		"cluster": func(addr string) redis.Config {
			return redis.Config{ReadTimeout: testkit.Patience, Endpoints: []string{addr}}
		},
	} {
		for what, write := range map[string]func(*redis.Client) error{
			"put":    func(c *redis.Client) error { return c.Put(t.Context(), root+"a", []byte("1")) },
			"delete": func(c *redis.Client) error { _, err := c.Delete(t.Context(), root+"a"); return err },
		} {
			t.Run(name+" "+what, func(t *testing.T) {
				var executed atomic.Int32
				err := write(dial(t, config(forgetful(t, &executed))))
				if n := executed.Load(); err == nil || n != 1 {
					t.Errorf("the error is %v after %d executions; want an error after 1", err, n)
				}
			})
		}
	}
}

// A connection that has ended while nobody used it fails no write.
func TestAWriteAfterAnIdleConnectionHasEnded(t *testing.T) {
	t.Parallel()
	s := start(t)
	client := dial(t, redis.Config{ReadTimeout: testkit.Patience, Endpoint: s.redis.Addr})
	for i := range 5 {
		if err := client.Put(t.Context(), root+"a", []byte("1")); err != nil {
			t.Fatalf("round %d: %v", i, err)
		}
		s.do("CLIENT", "KILL", "TYPE", "normal")
		s.do("PING") // the server has closed the connections before it answers
	}
}
