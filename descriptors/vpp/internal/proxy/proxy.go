// Package proxy serves GoVPP's proxy client (go.fd.io/govpp/proxy): it passes the client's
// requests on to VPP, over a connection of its own.
//
//	s, err := proxy.Open(ctx, socket, statsSocket)
//	defer s.Close()
//	s.Methods().ServeHTTP(w, r) // until the client disconnects
//
// It does what the server of the same GoVPP package does, and speaks the protocol of net/rpc.
// That server cannot be used: it finds its methods by reflection, and the linker of a program
// that does so keeps every exported method of every type. The agent was 16 MB larger with it,
// and took 8 MB more memory.
//
//	file        | question
//	proxy.go    | the methods, and their connection to VPP
//	counters.go | VPP's counters, for GoVPP's StatsConnection
//	rpc.go      | net/rpc's protocol for a table of methods
//
// A Server belongs to one client. Its methods may be called at once, from any goroutine.
package proxy

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"reflect"
	"slices"
	"sync"
	"time"

	"go.fd.io/govpp/adapter/socketclient"
	"go.fd.io/govpp/api"
	"go.fd.io/govpp/core"
	"go.fd.io/govpp/proxy"
)

// reconnects is the pause between two attempts to connect to a VPP that is gone.
const reconnects = time.Second

// mostStreams is how many streams a client may have open. VPP would run out of its own
// contexts for requests much later.
const mostStreams = 1000

// A Server passes the requests of one client on to VPP.
type Server struct {
	binary *core.Connection
	stats  *core.StatsConnection // nil: VPP has no counters

	counting sync.Mutex // guards the use of stats, which keeps what it has read

	mu      sync.Mutex // guards all below
	last    uint32     // ID of the newest stream
	streams map[uint32]api.Stream
}

// Open connects to VPP, and waits until that connection is usable or ctx ends. noStats is the
// reason why the client gets no counters, or nil.
func Open(ctx context.Context, socket, statsSocket string) (s *Server, noStats, err error) {
	// GoVPP connects again after a loss of VPP, for as long as the client stays.
	binary, events, err := core.AsyncConnect(socketclient.NewVppClient(socket), math.MaxInt, reconnects)
	if err != nil {
		return nil, nil, err
	}
	for connected := false; !connected; {
		select {
		case e := <-events:
			connected = e.State == core.Connected
		case <-ctx.Done():
			binary.Disconnect()
			return nil, nil, ctx.Err()
		}
	}
	stats, noStats := core.ConnectStats(counters{statsSocket})
	return &Server{binary: binary, stats: stats, streams: map[uint32]api.Stream{}}, noStats, nil
}

// Close ends the connections to VPP.
func (s *Server) Close() {
	s.stats.Disconnect() // nil does nothing
	s.binary.Disconnect()
}

// Methods returns the methods under the names that GoVPP's client calls.
func (s *Server) Methods() Methods {
	return Methods{
		"BinapiRPC.Compatibility":  methodOf(s.compatibility),
		"BinapiRPC.Invoke":         methodOf(s.invoke),
		"BinapiRPC.NewAPIStream":   methodOf(s.open),
		"BinapiRPC.SendMessage":    methodOf(s.send),
		"BinapiRPC.ReceiveMessage": methodOf(s.receive),
		"BinapiRPC.CloseStream":    methodOf(s.end),
		"StatsRPC.GetStats":        methodOf(s.count),
	}
}

// compatibility sorts the messages, which have the form name_crc, by whether VPP has them, for
// each folder of messages that this program knows. It fails if no folder has them all.
func (s *Server) compatibility(q proxy.BinapiCompatibilityRequest) (out proxy.BinapiCompatibilityResponse, err error) {
	channel, err := s.binary.NewAPIChannel()
	if err != nil {
		return out, err
	}
	defer channel.Close()
	out = proxy.BinapiCompatibilityResponse{CompatibleMsgs: map[string][]string{}, IncompatibleMsgs: map[string][]string{}}
	for folder, known := range api.GetRegisteredMessages() {
		good, bad := []string{}, []string{}
		for _, name := range q.MsgNameCrcs {
			m, ok := known[name]
			if ok && channel.CheckCompatiblity(m) == nil {
				good = append(good, name)
			} else {
				bad = append(bad, name)
			}
		}
		out.CompatibleMsgs[folder], out.IncompatibleMsgs[folder] = good, bad
	}
	if !slices.ContainsFunc(slices.Collect(maps.Values(out.IncompatibleMsgs)), func(bad []string) bool { return len(bad) == 0 }) {
		return out, errors.New("compatibility check failed")
	}
	return out, nil
}

// invoke sends one request, and returns its reply or all of its replies.
func (s *Server) invoke(q proxy.BinapiRequest) (out proxy.BinapiResponse, err error) {
	if q.Msg == nil || q.ReplyMsg == nil {
		return out, errors.New("expected a request and the message of its reply")
	}
	channel, err := s.binary.NewAPIChannel()
	if err != nil {
		return out, err
	}
	defer channel.Close()
	channel.SetReplyTimeout(cmp.Or(q.Timeout, core.DefaultReplyTimeout))
	if !q.IsMulti {
		out.Msg = sameType(q.ReplyMsg)
		return out, channel.SendRequest(q.Msg).ReceiveReply(out.Msg)
	}
	for replies := channel.SendMultiRequest(q.Msg); ; {
		m := sameType(q.ReplyMsg)
		last, err := replies.ReceiveReply(m)
		if last || err != nil {
			return out, err
		}
		out.Msgs = append(out.Msgs, m)
	}
}

// sameType returns an empty message of the type of m.
func sameType(m api.Message) api.Message {
	return reflect.New(reflect.TypeOf(m).Elem()).Interface().(api.Message)
}

// open begins a stream.
func (s *Server) open(proxy.RPCStreamReqResp) (out proxy.RPCStreamReqResp, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.streams) == mostStreams {
		return out, fmt.Errorf("the client has %d streams; expected at most that many", mostStreams)
	}
	// The stream ends with the connection, which outlives the request.
	stream, err := s.binary.NewStream(context.Background())
	if err != nil {
		return out, err
	}
	s.last++
	s.streams[s.last] = stream
	return proxy.RPCStreamReqResp{ID: s.last}, nil
}

// stream returns an open stream.
func (s *Server) stream(id uint32) (api.Stream, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	stream, ok := s.streams[id]
	if !ok {
		return nil, fmt.Errorf("no stream has the ID %d", id)
	}
	return stream, nil
}

// send sends one message on a stream.
func (s *Server) send(q proxy.RPCStreamReqResp) (out proxy.RPCStreamReqResp, err error) {
	stream, err := s.stream(q.ID)
	if err != nil {
		return out, err
	}
	if q.Msg == nil {
		return out, errors.New("expected a message")
	}
	return out, stream.SendMsg(q.Msg)
}

// receive waits for one message on a stream.
func (s *Server) receive(q proxy.RPCStreamReqResp) (out proxy.RPCStreamReqResp, err error) {
	stream, err := s.stream(q.ID)
	if err != nil {
		return out, err
	}
	out.Msg, err = stream.RecvMsg()
	return out, err
}

// end closes a stream.
func (s *Server) end(q proxy.RPCStreamReqResp) (out proxy.RPCStreamReqResp, err error) {
	stream, err := s.stream(q.ID)
	if err != nil {
		return out, err
	}
	s.mu.Lock()
	delete(s.streams, q.ID)
	s.mu.Unlock()
	return out, stream.Close()
}

// count reads counters of one kind. GoVPP takes all threads for equally long; a VPP of which that is
// not true makes it panic.
func (s *Server) count(q proxy.StatsRequest) (out proxy.StatsResponse, err error) {
	defer func() {
		if p := recover(); p != nil {
			out, err = proxy.StatsResponse{}, fmt.Errorf("VPP's counters are inconsistent: %v", p)
		}
	}()
	if s.stats == nil {
		return out, errors.New("VPP has no counters that can be read")
	}
	s.counting.Lock()
	defer s.counting.Unlock()
	switch q.StatsType {
	case "system":
		out.SysStats = new(api.SystemStats)
		err = s.stats.GetSystemStats(out.SysStats)
	case "node":
		out.NodeStats = new(api.NodeStats)
		err = s.stats.GetNodeStats(out.NodeStats)
	case "interface":
		out.IfaceStats = new(api.InterfaceStats)
		err = s.stats.GetInterfaceStats(out.IfaceStats)
	case "error":
		out.ErrStats = new(api.ErrorStats)
		err = s.stats.GetErrorStats(out.ErrStats)
	case "buffer":
		out.BufStats = new(api.BufferStats)
		err = s.stats.GetBufferStats(out.BufStats)
	case "memory":
		out.MemStats = new(api.MemoryStats)
		err = s.stats.GetMemoryStats(out.MemStats)
	default:
		err = fmt.Errorf("%q: expected system, node, interface, error, buffer or memory", q.StatsType)
	}
	return out, err
}
