package vpp_test

import (
	"bufio"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"path/filepath"
	"reflect"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"go.fd.io/govpp/adapter/socketclient"
	"go.fd.io/govpp/api"
	"go.fd.io/govpp/binapi/memclnt"
	"go.fd.io/govpp/core"
	"golang.org/x/sync/errgroup"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"

	"github.com/keyplane/keyplane/descriptors/vpp"
	"github.com/keyplane/keyplane/internal/testkit"
	"github.com/keyplane/keyplane/internal/vppwire"
	"github.com/keyplane/keyplane/scheduler"
	"github.com/keyplane/keyplane/scheduler/wait"
)

// A race measures an agent that applies values to an empty VPP, beside two bare clients that
// send the same requests without waiting for replies. All begin with the JSON of the values.
// The agent decodes and checks it. The clients unmarshal it with protojson, as a program with
// the same protos does, and drop the result: they send the requests that VPP received from the
// agent, without those that only read. So they need no conversion of values, no order and no
// memory.
//
//	client | connection
//	govpp  | GoVPP's: a stream of its core, over its socket adapter
//	writer | a socket that is written in pieces of 64 KiB, with GoVPP's bindings alone
//
// VPP is simulated, or the program VPP=binary. It is a process of its own, and starts anew for each of the three. Garbage is
// collected as an agent does it while it starts; see agent/heap.go.
type race struct {
	values config
	// awaitEvents waits until values are applied that VPP confirms by events; nil: none are.
	awaitEvents func(b *testing.B, s *scheduler.Scheduler)
}

// run reports the time of each, and the relation of the agent to the clients, as metrics.
func (r race) run(b *testing.B) {
	b.Helper()
	defer debug.SetGCPercent(debug.SetGCPercent(400))
	vpp := testkit.StartVPPOrSim(b)
	empty := func() string {
		vpp.Kill()
		vpp.Start()
		return vpp.Socket
	}
	tap := startTap(b, vpp.Socket)
	r.agent(b, tap.socket)
	requests := tap.taken()
	var agent, read, govpp, writer, agentCPU, readCPU, govppCPU time.Duration
	for b.Loop() {
		took, used := r.agent(b, empty())
		agent, agentCPU = agent+took, agentCPU+used
		took, used = r.read(b)
		read, readCPU = read+took, readCPU+used
		took, used = pipelined(b, empty(), requests)
		govpp, govppCPU = govpp+took, govppCPU+used
		writer += written(b, empty(), requests)
	}
	seconds := func(d time.Duration) float64 { return d.Seconds() / float64(b.N) }
	b.ReportMetric(seconds(agent), "s/agent")
	b.ReportMetric(seconds(read), "s/read")
	b.ReportMetric(seconds(govpp), "s/govpp")
	b.ReportMetric(seconds(writer), "s/writer")
	b.ReportMetric(seconds(agentCPU), "cpu-s/agent")
	b.ReportMetric(seconds(readCPU), "cpu-s/read")
	b.ReportMetric(seconds(govppCPU), "cpu-s/govpp")
	b.ReportMetric(agent.Seconds()/(read+govpp).Seconds(), "of-govpp")
	b.ReportMetric(agentCPU.Seconds()/(readCPU+govppCPU).Seconds(), "cpu-of-govpp")
	b.ReportMetric(agent.Seconds()/(read+writer).Seconds(), "of-writer")
	b.ReportMetric(float64(len(requests)), "requests")
}

// agent returns the time from the JSON of the values until all are in VPP, and the processor
// time of this process meanwhile.
func (r race) agent(b *testing.B, socket string) (took, used time.Duration) {
	b.Helper()
	a := startRacer(b, socket, memories{})
	defer a.stop()
	begun, before := time.Now(), processorTime(b)
	r.commit(b, a.s, false)
	if r.awaitEvents != nil {
		r.awaitEvents(b, a.s)
	}
	took, used = time.Since(begun), processorTime(b)-before
	a.demandApplied(b)
	return took, used
}

// A racer is an agent in this process.
type racer struct {
	s      *scheduler.Scheduler
	plugin *vpp.Plugin
	stop   func()
}

// startRacer starts an agent without values. It is connected and has collected its garbage.
func startRacer(b *testing.B, socket string, known memories) racer {
	b.Helper()
	nothing := slog.New(slog.DiscardHandler)
	s := scheduler.New(scheduler.Options{Log: nothing, Memory: known.applied})
	plugin, err := vpp.Register(s, vpp.Options{Connection: vpp.Config{Socket: socket, ProbeTimeout: testkit.Patience}, Log: nothing, Settings: known.settings})
	if err != nil {
		b.Fatal(err)
	}
	ctx, cancel := context.WithCancel(b.Context())
	ended := make(chan error, 2)
	go func() { ended <- s.Run(ctx) }()
	go func() { ended <- plugin.Run(ctx) }()
	for len(s.History()) == 0 { // the connection is ready then
		runtime.Gosched()
	}
	runtime.GC()
	return racer{s, plugin, func() { cancel(); <-ended; <-ended }}
}

// demandApplied fails the benchmark unless all values are in VPP.
func (a racer) demandApplied(b *testing.B) {
	b.Helper()
	for _, st := range a.s.Statuses("") {
		if st.State != scheduler.Configured && st.State != scheduler.Obtained {
			b.Fatalf("%s is %v: %v", st.Key, st.State, st.Err)
		}
	}
}

// commit decodes the values and declares them; refresh: as the first transaction of an agent with
// sources.
func (r race) commit(b *testing.B, s *scheduler.Scheduler, refresh bool) *scheduler.Record {
	b.Helper()
	record, err := s.Commit(b.Context(), scheduler.Txn{Replace: true, Refresh: refresh, Changes: r.decode(b, s)})
	if err != nil {
		b.Fatal(err)
	}
	return record
}

// restarts reports the time of the cold start, the time from a new VPP that accepts connections until
// all values are restored, and the time and the operations of a new agent that finds them all.
func (r race) restarts(b *testing.B) {
	b.Helper()
	defer debug.SetGCPercent(debug.SetGCPercent(400))
	vpp := testkit.StartVPPOrSim(b)
	keys := make([]string, len(r.values))
	for i := range keys {
		keys[i] = r.values[i].key
	}
	var cold, restored, again time.Duration
	operations := 0
	for b.Loop() {
		vpp.Kill()
		vpp.Start()
		known := quiet()
		a := startRacer(b, vpp.Socket, known)
		begun := time.Now()
		r.commit(b, a.s, false)
		cold += time.Since(begun)
		a.demandApplied(b)

		vpp.Kill()
		for a.plugin.Connection().Connected || !lost(a.s, keys[0]) {
			runtime.Gosched()
		}
		runtime.GC()
		vpp.Start()
		begun = time.Now()
		if err := wait.For(b.Context(), a.s, keys...); err != nil {
			b.Fatal(err)
		}
		restored += time.Since(begun)
		a.demandApplied(b)
		a.stop()

		begun = time.Now()
		a = startRacer(b, vpp.Socket, known)
		for _, op := range r.commit(b, a.s, true).Executed.All() {
			if !op.Noop {
				operations++
			}
		}
		again += time.Since(begun)
		a.demandApplied(b)
		a.stop()
	}
	n := float64(b.N)
	b.ReportMetric(cold.Seconds()/n, "s/cold")
	b.ReportMetric(restored.Seconds()/n, "s/restored")
	b.ReportMetric(again.Seconds()/n, "s/agent-again")
	b.ReportMetric(restored.Seconds()/cold.Seconds(), "restored-of-cold")
	b.ReportMetric(float64(operations)/n, "operations")
}

// lost tells whether the agent has noticed that VPP, and a value with it, is gone.
func lost(s *scheduler.Scheduler, key string) bool {
	st, ok := s.Status(key)
	return ok && st.State != scheduler.Configured
}

// decode decodes and checks the values on all processors, as the orchestrator does.
func (r race) decode(b *testing.B, s *scheduler.Scheduler) []scheduler.Change {
	b.Helper()
	changes := make([]scheduler.Change, len(r.values))
	var workers errgroup.Group
	size := max(1, (len(changes)+runtime.GOMAXPROCS(0)-1)/runtime.GOMAXPROCS(0))
	for from := 0; from < len(changes); from += size {
		workers.Go(func() error {
			for i := from; i < min(from+size, len(changes)); i++ {
				v, err := s.Decode(r.values[i].key, r.values[i].json)
				if err != nil {
					return fmt.Errorf("%s: %w", r.values[i].key, err)
				}
				changes[i] = v.Change()
			}
			return nil
		})
	}
	if err := workers.Wait(); err != nil {
		b.Fatal(err)
	}
	return changes
}

// read unmarshals the JSON of the values, as a bare client does. It returns the elapsed time, and
// the processor time of this process.
func (r race) read(b *testing.B) (took, used time.Duration) {
	b.Helper()
	runtime.GC()
	begun, before := time.Now(), processorTime(b)
	all := make([]proto.Message, len(r.values))
	for i, d := range r.values {
		all[i] = d.model.New()
		if err := protojson.Unmarshal(d.json, all[i]); err != nil {
			b.Fatalf("%s: %v", d.key, err)
		}
	}
	took, used = time.Since(begun), processorTime(b)-before
	runtime.KeepAlive(all)
	return took, used
}

// pipelined sends requests over GoVPP's connection. It returns the elapsed time until the last
// reply, and the processor time of this process.
func pipelined(b *testing.B, socket string, requests []api.Message) (took, used time.Duration) {
	b.Helper()
	known := map[string]api.Message{}
	for _, m := range bindings() {
		known[m.GetMessageName()] = m
	}
	c, err := core.Connect(socketclient.NewVppClient(socket))
	if err != nil {
		b.Fatal(err)
	}
	defer c.Disconnect()
	channel, err := c.NewAPIChannelBuffered(1024, 1024)
	if err != nil {
		b.Fatal(err)
	}
	defer channel.Close()
	replies := make([]api.Message, len(requests))
	for i, q := range requests {
		replies[i] = fresh(known[q.GetMessageName()+"_reply"])
	}
	runtime.GC()
	begun, before := time.Now(), processorTime(b)
	sent := make(chan api.RequestCtx, 1024)
	go func() {
		defer close(sent)
		for _, q := range requests {
			sent <- channel.SendRequest(q)
		}
	}()
	var errs []error
	for i := range requests { // all of them: GoVPP's channel must not be closed before the last
		if err := (<-sent).ReceiveReply(replies[i]); err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", requests[i].GetMessageName(), err))
		}
	}
	took, used = time.Since(begun), processorTime(b)-before
	if len(errs) > 0 {
		b.Fatal(errors.Join(errs[:min(len(errs), 10)]...))
	}
	return took, used
}

// refusal returns an error if VPP refuses a request: its reply has a return value.
func refusal(request, reply api.Message) error {
	retval := reflect.ValueOf(reply).Elem().FieldByName("Retval")
	if retval.IsValid() && retval.Int() != 0 {
		return fmt.Errorf("VPP refuses %s: %w", request.GetMessageName(), api.RetvalToVPPApiError(int32(retval.Int())))
	}
	return nil
}

// written sends requests over a socket of its own. It returns the time until the last reply.
func written(b *testing.B, socket string, requests []api.Message) time.Duration {
	b.Helper()
	sock, err := net.Dial("unix", socket)
	if err != nil {
		b.Fatal(err)
	}
	defer sock.Close()
	in := bufio.NewReaderSize(sock, 64<<10)
	hello, err := vppwire.Append(nil, vppwire.CreateID, &memclnt.SockclntCreate{Name: "bare"}, 0, 1)
	if err == nil {
		_, err = sock.Write(hello)
	}
	var message []byte
	if err == nil {
		message, err = vppwire.Read(in, nil)
	}
	if err != nil {
		b.Fatal(err)
	}
	client, table := welcomed(b, message)
	ids := map[string]uint16{}
	for id, m := range table {
		ids[m.GetMessageName()] = id
	}
	runtime.GC()
	begun := time.Now()
	failed := make(chan error, 1)
	go func() {
		out := bufio.NewWriterSize(sock, 64<<10)
		var frame []byte
		for _, q := range requests {
			frame, err := vppwire.Append(frame[:0], ids[q.GetMessageName()], q, client, 1)
			if err == nil {
				_, err = out.Write(frame)
			}
			if err != nil {
				failed <- err
				return
			}
		}
		failed <- out.Flush()
	}()
	var decoder vppwire.Decoder
	for _, q := range requests {
		if message, err = vppwire.Read(in, message); err != nil {
			b.Fatal(err)
		}
		reply := fresh(table[vppwire.ID(message)])
		if err := decoder.Decode(message, reply); err != nil {
			b.Fatal(err)
		}
		if err := refusal(q, reply); err != nil {
			b.Fatal(err)
		}
	}
	took := time.Since(begun)
	if err := <-failed; err != nil {
		b.Fatal(err)
	}
	return took
}

// welcomed returns the index of a client and VPP's messages by number, from VPP's first answer.
// Messages that GoVPP's bindings lack are left out.
func welcomed(b *testing.B, message []byte) (client uint32, table map[uint16]api.Message) {
	b.Helper()
	var welcome memclnt.SockclntCreateReply
	if err := vppwire.Decode(message, &welcome); err != nil {
		b.Fatal(err)
	}
	known := bindings()
	table = map[uint16]api.Message{}
	for _, e := range welcome.MessageTable {
		name, _, _ := strings.Cut(e.Name, "\x00")
		if m := known[name]; m != nil {
			table[e.Index] = m
		}
	}
	return welcome.Index, table
}

// bindings returns all messages of GoVPP's bindings that are linked, by name and checksum.
func bindings() map[string]api.Message {
	out := map[string]api.Message{}
	for _, path := range api.GetRegisteredMessages() {
		for _, m := range path {
			out[vppwire.Name(m)] = m
		}
	}
	return out
}

// processorTime returns the processor time that this process has used.
func processorTime(b *testing.B) time.Duration {
	b.Helper()
	var used syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &used); err != nil {
		b.Fatal(err)
	}
	return time.Duration(used.Utime.Nano() + used.Stime.Nano())
}

// A tap is a socket in front of VPP for one client. It keeps the requests that change VPP.
type tap struct {
	socket string

	mu       sync.Mutex // guards the fields below
	table    map[uint16]api.Message
	requests []api.Message
}

// startTap starts a tap in front of a socket. It ends with the benchmark.
func startTap(b *testing.B, target string) *tap {
	b.Helper()
	t := &tap{socket: filepath.Join(b.TempDir(), "api.sock")}
	listener, err := net.Listen("unix", t.socket)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { listener.Close() })
	go func() {
		client, err := listener.Accept()
		if err != nil {
			return
		}
		defer client.Close()
		server, err := net.Dial("unix", target)
		if err != nil {
			return
		}
		defer server.Close()
		go t.answers(b, client, server)
		t.ask(client, server)
	}()
	return t
}

// taken returns the requests so far.
func (t *tap) taken() []api.Message {
	t.mu.Lock()
	defer t.mu.Unlock()
	return slices.Clone(t.requests)
}

// answers copies answers to the client. The first one has VPP's messages by number.
func (t *tap) answers(b *testing.B, client, server net.Conn) {
	b.Helper()
	defer client.Close()
	in := bufio.NewReader(server)
	message, err := vppwire.Read(in, nil)
	if err != nil {
		return
	}
	t.mu.Lock()
	_, t.table = welcomed(b, message)
	t.mu.Unlock()
	if _, err := client.Write(framed(message)); err == nil {
		_, _ = io.Copy(client, in) // ends with either connection
	}
}

// ask copies requests to VPP, and keeps those that change it.
func (t *tap) ask(client, server net.Conn) {
	in := bufio.NewReader(client)
	for message, err := vppwire.Read(in, nil); err == nil; message, err = vppwire.Read(in, message) {
		t.mu.Lock()
		if kind := t.table[vppwire.ID(message)]; kind != nil && !onlyReads(vppwire.Counted(kind.GetMessageName(), message)) {
			q := fresh(kind)
			if vppwire.Decode(message, q) == nil && !removes(q) {
				t.requests = append(t.requests, q)
			}
		}
		t.mu.Unlock()
		if _, err := server.Write(framed(message)); err != nil {
			return
		}
	}
}

// removes reports whether a request removes something. An agent makes sure that nothing is in the
// way; in an empty VPP nothing is, and VPP refuses some of these requests.
func removes(q api.Message) bool {
	v := reflect.ValueOf(q).Elem()
	add, del := v.FieldByName("IsAdd"), v.FieldByName("IsDel")
	return add.IsValid() && add.Kind() == reflect.Bool && !add.Bool() || del.IsValid() && del.Kind() == reflect.Bool && del.Bool()
}

// framed returns a message with the header of VPP's socket API: 16 bytes, with the length at
// offset 8.
func framed(message []byte) []byte {
	const header = 16
	out := make([]byte, header, header+len(message))
	binary.BigEndian.PutUint32(out[8:], uint32(len(message)))
	return append(out, message...)
}

// fresh returns a new message of the type of m.
func fresh(m api.Message) api.Message {
	return reflect.New(reflect.TypeOf(m).Elem()).Interface().(api.Message)
}
