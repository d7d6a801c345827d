package vpp_test

import (
	"bufio"
	"context"
	"fmt"
	"log/slog"
	"net"
	"runtime"
	"strings"
	"testing"
	"time"

	"go.fd.io/govpp/api"
	"go.fd.io/govpp/binapi/memclnt"
	"go.fd.io/govpp/binapi/nat44_ed"
	"go.fd.io/govpp/binapi/nat_types"

	"github.com/keyplane/keyplane/descriptors/vpp"
	"github.com/keyplane/keyplane/descriptors/vpp/keys"
	"github.com/keyplane/keyplane/internal/testkit"
	"github.com/keyplane/keyplane/internal/vppwire"
	"github.com/keyplane/keyplane/proto/ligato/vpp/nat"
	"github.com/keyplane/keyplane/scheduler"
)

// BenchmarkDNATCold10k declares 10,000 values of one static mapping each to an agent on a VPP
// without any, beside a bare program that writes the same requests without waiting for replies.
// The simulated VPP is a process of its own.
func BenchmarkDNATCold10k(b *testing.B) {
	const mappings = 10_000
	var bare, ours time.Duration
	for b.Loop() {
		bare += bareMappings(b, testkit.StartVPPSim(b).Socket, mappings)
		ours += ourMappings(b, testkit.StartVPPSim(b).Socket, mappings)
	}
	b.ReportMetric(bare.Seconds()/float64(b.N), "s/bare")
	b.ReportMetric(ours.Seconds()/float64(b.N), "s/ours")
	b.ReportMetric(ours.Seconds()/bare.Seconds(), "of-bare")
}

// bareMappings is the time in which a bare program makes n mappings.
func bareMappings(b *testing.B, socket string, n int) time.Duration {
	b.Helper()
	check := func(err error) {
		if err != nil {
			b.Helper()
			b.Fatal(err)
		}
	}
	sock, err := net.Dial("unix", socket)
	check(err)
	defer sock.Close()
	in := bufio.NewReaderSize(sock, 64<<10)
	hello, err := vppwire.Append(nil, vppwire.CreateID, &memclnt.SockclntCreate{Name: "bare"}, 0, 1)
	check(err)
	_, err = sock.Write(hello)
	check(err)
	message, err := vppwire.Read(in, nil)
	check(err)
	var welcome memclnt.SockclntCreateReply
	check(vppwire.Decode(message, &welcome))
	ids := map[string]uint16{}
	for _, m := range welcome.MessageTable {
		name, _, _ := strings.Cut(m.Name, "\x00")
		ids[name] = m.Index
	}
	runtime.GC()
	begun := time.Now()
	failed := make(chan error, 1)
	go func() {
		out := bufio.NewWriterSize(sock, 64<<10)
		var frame []byte
		write := func(m api.Message) (err error) {
			if frame, err = vppwire.Append(frame[:0], ids[vppwire.Name(m)], m, welcome.Index, 1); err == nil {
				_, err = out.Write(frame)
			}
			return err
		}
		err := write(&nat44_ed.Nat44EdPluginEnableDisable{Enable: true})
		for i := 0; i < n && err == nil; i++ {
			err = write(&nat44_ed.Nat44AddDelStaticMapping{
				IsAdd: true, Flags: nat_types.NAT_IS_OUT2IN_ONLY, ExternalIPAddress: [4]byte{11, 0, byte(i >> 8), byte(i)}, ExternalPort: 80, Protocol: 6,
				LocalIPAddress: [4]byte{10, 0, byte(i >> 8), byte(i)}, LocalPort: 8080, ExternalSwIfIndex: ^(nat44_ed.Nat44AddDelStaticMapping{}.ExternalSwIfIndex), Tag: fmt.Sprint("dnat", i),
			})
		}
		if err == nil {
			err = out.Flush()
		}
		failed <- err
	}()
	message, err = vppwire.Read(in, message)
	check(err)
	for range n {
		message, err = vppwire.Read(in, message)
		check(err)
		var reply nat44_ed.Nat44AddDelStaticMappingReply
		check(vppwire.Decode(message, &reply))
		if reply.Retval != 0 {
			b.Fatalf("VPP refuses a mapping: %d", reply.Retval)
		}
	}
	took := time.Since(begun)
	check(<-failed)
	return took
}

// ourMappings is the time from the transaction with n mappings until all are in VPP.
func ourMappings(b *testing.B, socket string, n int) time.Duration {
	b.Helper()
	quiet := slog.New(slog.DiscardHandler)
	s := scheduler.New(scheduler.Options{Log: quiet})
	plugin, err := vpp.Register(s, vpp.Options{Connection: vpp.Config{Socket: socket}, Log: quiet})
	if err != nil {
		b.Fatal(err)
	}
	ctx, cancel := context.WithCancel(b.Context())
	ended := make(chan error, 2)
	go func() { ended <- s.Run(ctx) }()
	go func() { ended <- plugin.Run(ctx) }()
	defer func() { cancel(); <-ended; <-ended }()
	for len(s.History()) == 0 { // the connection is ready then
		runtime.Gosched()
	}
	txn := scheduler.Txn{Replace: true}
	txn.Changes = append(txn.Changes, scheduler.Want(keys.NAT44Global, &nat.Nat44Global{}))
	for i := range n {
		label := fmt.Sprint("dnat", i)
		txn.Changes = append(txn.Changes, scheduler.Want("config/vpp/nat/v2/dnat44/"+label, &nat.DNat44{Label: label, StMappings: []*nat.DNat44_StaticMapping{{
			ExternalIp: fmt.Sprintf("11.0.%d.%d", i>>8, i&255), ExternalPort: 80,
			LocalIps: []*nat.DNat44_StaticMapping_LocalIP{{LocalIp: fmt.Sprintf("10.0.%d.%d", i>>8, i&255), LocalPort: 8080}},
		}}}))
	}
	runtime.GC()
	begun := time.Now()
	if _, err := s.Commit(ctx, txn); err != nil {
		b.Fatal(err)
	}
	return time.Since(begun)
}
