package main

import (
	"bytes"
	"context"
	"errors"
	"io"
	"path/filepath"
	"strings"
	"testing"

	"go.fd.io/govpp/api"
	"go.fd.io/govpp/binapi/bfd"
	"go.fd.io/govpp/binapi/lb"
	"go.fd.io/govpp/binapi/lcp"
	"go.fd.io/govpp/binapi/lisp"
	"go.fd.io/govpp/binapi/qos"
	"go.fd.io/govpp/binapi/vpe"

	"github.com/keyplane/keyplane/descriptors/vpp/conn"
	"github.com/keyplane/keyplane/internal/testkit"
)

// start runs one until the test ends; it has said that it is there.
func start(t *testing.T, args ...string) {
	ctx, cancel := context.WithCancel(context.Background())
	out, in := io.Pipe()
	ended := make(chan error, 1)
	go func() { ended <- run(ctx, args, in, testkit.Log(t)) }()
	line := make([]byte, 200)
	n, err := out.Read(line)
	if err != nil || !strings.HasPrefix(string(line[:n]), "simulated VPP ") {
		t.Fatalf("it says %q, %v", line[:n], err)
	}
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
}

func TestStartAndShow(t *testing.T) {
	socket := filepath.Join(t.TempDir(), "vpp", "api.sock")
	var out bytes.Buffer
	if err := run(t.Context(), []string{"-socket", socket, "show", "interface"}, &out, testkit.Log(t)); err == nil {
		t.Error("nothing runs, and it shows something")
	}
	start(t, "-socket", socket, "-release", "24.10", "-hardware", "nic0,nic1", "-workers", "2", "-without", "rdma,gtpu")
	if err := run(t.Context(), []string{"-socket", socket, "show", "interface"}, &out, testkit.Log(t)); err != nil {
		t.Fatal(err)
	}
	if text := out.String(); !strings.HasPrefix(text, "VPP 24.10-simulated, show interface:\n") || !strings.Contains(text, "local0") || !strings.Contains(text, "nic1") {
		t.Errorf("it shows %s", text)
	}
	err := run(t.Context(), []string{"-socket", socket}, io.Discard, testkit.Log(t))
	if err == nil || !strings.Contains(err.Error(), "a VPP at "+socket+" already") {
		t.Errorf("a second one: %v", err)
	}
}

func TestCommandsThatMakeNoSense(t *testing.T) {
	for _, args := range [][]string{{"-no-such-flag"}, {"create", "loopback"}} {
		if err := run(t.Context(), args, io.Discard, testkit.Log(t)); !errors.Is(err, errUsage) {
			t.Errorf("%v: %v", args, err)
		}
	}
	for says, args := range map[string][]string{`no release "21.01"`: {"-release", "21.01"}, `no plugin "x"`: {"-without", "gtpu,x"}} {
		err := run(t.Context(), append(args, "-socket", filepath.Join(t.TempDir(), "s")), io.Discard, testkit.Log(t))
		if err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%v: %v", args, err)
		}
	}
}

// The table of a release has all messages that the bindings know, except those that the release lacks or
// defines in another way. A request that is not simulated is refused with a value that VPP returns for none,
// and the next request is served.
func TestMessageTableIsWhole(t *testing.T) {
	for _, tt := range []struct {
		release string
		has     bool // bfd_udp_set_tos, which is new in 25.10
	}{{"22.02", false}, {"23.06", false}, {"25.10", true}} {
		t.Run(tt.release, func(t *testing.T) {
			socket := filepath.Join(t.TempDir(), "api.sock")
			start(t, "-socket", socket, "-release", tt.release)
			c, err := conn.Dial(t.Context(), socket, "test")
			if err != nil {
				t.Fatal(err)
			}
			go func() { _ = c.Run(t.Context()) }()
			if c.Has(&bfd.BfdUDPSetTos{}) != tt.has {
				t.Errorf("the table has bfd_udp_set_tos: %v; expected %v", !tt.has, tt.has)
			}
			for _, served := range []api.Message{&lisp.LispEnableDisable{}, &qos.QosRecordDump{}, &lb.LbConf{}, &lb.LbConfReply{}, &lcp.LcpItfPairGet{}} {
				if !c.Has(served) {
					t.Errorf("the table lacks %s", served.GetMessageName())
				}
			}
			err = c.Call(t.Context(), &lisp.LispEnableDisable{IsEnable: true}, &lisp.LispEnableDisableReply{})
			if err == nil || !strings.Contains(err.Error(), "-9999") {
				t.Errorf("a request that is not simulated: %v; expected the return value -9999", err)
			}
			if err := c.Call(t.Context(), &vpe.ShowVersion{}, &vpe.ShowVersionReply{}); err != nil {
				t.Errorf("the next request: %v", err)
			}
		})
	}
}
