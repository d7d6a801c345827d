package siege

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"
	"sync"
	"time"
)

// hostileRedis answers with what no Redis answers, in another way on each connection.
func hostileRedis(ctx context.Context, t *target) error {
	prefix := rootOf(t.label) + linux("x")
	lies := []func(c *redisClient){
		nested, negative, sizes, unending, (*redisClient).sound, func(c *redisClient) { c.scanning(prefix, 0) },
		func(c *redisClient) { c.scanning(prefix, 1) }, (*redisClient).pushing, types, func(c *redisClient) { c.values(prefix) },
	}
	return serve(ctx, t.redis, func(n int, c net.Conn) {
		t.struck()
		_ = c.SetWriteDeadline(time.Now().Add(10 * time.Second)) // fails with the connection
		lies[n%len(lies)](&redisClient{Conn: c, in: bufio.NewReader(c)})
	})
}

// serve calls answer with each connection and its number, from 1, on a goroutine of its own, until ctx ends.
func serve(ctx context.Context, l net.Listener, answer func(int, net.Conn)) error {
	var all sync.WaitGroup
	defer all.Wait()
	stop := context.AfterFunc(ctx, func() { l.Close() })
	defer stop()
	for n := 1; ; n++ {
		c, err := l.Accept()
		if err != nil {
			return unlessOver(ctx, err)
		}
		all.Go(func() {
			close := context.AfterFunc(ctx, func() { c.Close() })
			defer close()
			defer c.Close()
			answer(n, c)
		})
	}
}

// A redisClient is a connection of an agent to the hostile Redis.
type redisClient struct {
	net.Conn
	in *bufio.Reader
}

// command reads what the client asks for, in capitals; empty: it has left.
func (c *redisClient) command() []string {
	count, err := strconv.Atoi(c.line("*"))
	if err != nil || count < 1 || count > 1<<20 {
		return nil
	}
	var words []string
	for range count {
		size, err := strconv.Atoi(c.line("$"))
		if err != nil {
			return nil
		}
		word := make([]byte, size+2)
		if _, err := io.ReadFull(c.in, word); err != nil {
			return nil
		}
		words = append(words, strings.ToUpper(string(word[:size])))
	}
	return words
}

func (c *redisClient) line(mark string) string {
	text, err := c.in.ReadString('\n')
	if err != nil || !strings.HasPrefix(text, mark) {
		return ""
	}
	return strings.TrimSpace(text[1:])
}

// each answers each command, as long as there are commands and they can be answered.
func (c *redisClient) each(answer func(words []string) string) {
	for {
		words := c.command()
		if len(words) == 0 {
			return
		}
		if _, err := io.WriteString(c, answer(words)); err != nil {
			return
		}
	}
}

// greeting answers as a sound and empty Redis.
func greeting(words []string) string {
	switch words[0] {
	case "HELLO":
		return "%3\r\n$6\r\nserver\r\n$5\r\nredis\r\n$5\r\nproto\r\n:3\r\n$4\r\nrole\r\n$6\r\nmaster\r\n"
	case "PING":
		return "+PONG\r\n"
	case "SCAN":
		return "*2\r\n$1\r\n0\r\n*0\r\n"
	case "INFO":
		return "$-1\r\n"
	case "GET":
		return "_\r\n"
	case "MGET":
		return fmt.Sprintf("*%d\r\n%s", len(words)-1, strings.Repeat("_\r\n", len(words)-1))
	}
	return "+OK\r\n"
}

func (c *redisClient) sound() { c.each(greeting) }

func nested(c *redisClient) {
	c.each(func([]string) string { return strings.Repeat("*1\r\n", 5<<20) })
}

func negative(c *redisClient) {
	all := []string{"$-7\r\n", "*-5\r\n", "%-3\r\n", ">-1\r\n", "~-9\r\n", "=-4\r\n", "$-9223372036854775808\r\n"}
	n := 0
	c.each(func([]string) string { n++; return all[n%len(all)] })
}

func sizes(c *redisClient) {
	all := []string{"$9223372036854775807\r\n", "*2147483647\r\n", "%1073741824\r\n", "$536870912\r\nx", "~4294967296\r\n", ">9223372036854775807\r\n", "*99999999999999999999\r\n"}
	n := int(time.Now().UnixNano())
	c.each(func([]string) string { n++; return all[n%len(all)] })
}

// unending is a line without an end.
func unending(c *redisClient) { _, _ = io.Copy(c, endless("+AAAAAAAAAAAAAAA")) }

// scanning answers SCAN with a cursor that never comes to its end, and with the same keys or
// others each time.
func (c *redisClient) scanning(prefix string, step int) {
	n := 0
	c.each(func(words []string) string {
		if words[0] != "SCAN" {
			return greeting(words)
		}
		var b strings.Builder
		b.WriteString("*2\r\n$1\r\n7\r\n*1000\r\n")
		for i := range 1000 {
			key := fmt.Sprint(prefix, n*step*1000+i)
			fmt.Fprintf(&b, "$%d\r\n%s\r\n", len(key), key)
		}
		n++
		return b.String()
	})
}

// values answers each reading with more bytes than the agent may take.
func (c *redisClient) values(prefix string) {
	c.each(func(words []string) string {
		switch words[0] {
		case "SCAN":
			return fmt.Sprintf("*2\r\n$1\r\n0\r\n*1\r\n$%d\r\n%s\r\n", len(prefix), prefix)
		case "GET", "MGET", "GETRANGE", "STRLEN":
			return "*1\r\n$104857600\r\n" + strings.Repeat("v", 104857600) + "\r\n"
		}
		return greeting(words)
	})
}

// pushing names changes that nobody made, without end, and in shapes that have no meaning.
func (c *redisClient) pushing() {
	odd := ">0\r\n>1\r\n:5\r\n>2\r\n$10\r\ninvalidate\r\n:7\r\n>2\r\n$10\r\ninvalidate\r\n*1\r\n_\r\n>3\r\n$7\r\nmessage\r\n$1\r\nx\r\n$1\r\ny\r\n"
	n := 0
	c.each(func(words []string) string {
		n++
		if n < 6 {
			return greeting(words)
		}
		var b strings.Builder
		for i := range 50_000 {
			key := fmt.Sprintf("/nowhere/%d/%d", n, i)
			fmt.Fprintf(&b, ">2\r\n$10\r\ninvalidate\r\n*1\r\n$%d\r\n%s\r\n", len(key), key)
		}
		return b.String() + odd + greeting(words)
	})
}

// types answers with the rarer types of RESP3.
func types(c *redisClient) {
	all := []string{",inf\r\n", "(" + strings.Repeat("9", 1<<20) + "\r\n", "#x\r\n", "=15\r\ntxt:Some string\r\n", "|1\r\n+a\r\n+b\r\n+OK\r\n", "$?\r\n;4\r\nabcd\r\n;0\r\n", "*?\r\n", "!5\r\nERR x\r\n", "-\r\n", "\r\n", "\x00"}
	n := 0
	c.each(func(words []string) string {
		if n++; n < 3 {
			return greeting(words)
		}
		return all[n%len(all)]
	})
}
