// Vppsim is a simulated VPP: it speaks VPP's binary API at VPP's socket, keeps what it
// is told, and forwards no packet. With it the agent can be tried where there is no VPP.
//
//	vppsim -release 24.10     starts one; Ctrl-C ends it
//	vppsim show interface     asks the one that runs
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"go.fd.io/govpp/binapi/vlib"
	"go.fd.io/govpp/binapi/vpe"

	"github.com/keyplane/keyplane/descriptors/vpp/conn"
	"github.com/keyplane/keyplane/internal/vppsim"
)

const usage = `vppsim: a simulated VPP, which keeps what it is told and forwards no packet

  vppsim [flags]                  starts one; Ctrl-C ends it
  vppsim [flags] show PAGE ...    asks the one that runs: show interface, show bridge-domain,
                                  show l2fib, show ip fib, show ip table, and what else an
                                  unknown PAGE is answered with

  -socket PATH      where it is reached (default: /run/vpp/api.sock)
  -stats PATH       where its counters are (default: none)
  -release RELEASE  what it poses as (default: the newest), one of
                    %s
  -hardware NAMES   interfaces that it finds as it starts: GigabitEthernet0/8/0,...
  -workers N        threads beside the main one
  -without PLUGINS  that are not loaded: rdma,...
`

// errUsage says that the command line makes no sense.
var errUsage = errors.New("usage")

func main() {
	ctx, restore := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	err := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	restore()
	switch {
	case err == nil:
	case errors.Is(err, errUsage):
		fmt.Fprintf(os.Stderr, usage, strings.Join(vppsim.Releases(), " "))
		os.Exit(2)
	default:
		fmt.Fprintln(os.Stderr, "vppsim:", err)
		os.Exit(1)
	}
}

// run executes one command line.
func run(ctx context.Context, args []string, out, messages io.Writer) error {
	flags := flag.NewFlagSet("vppsim", flag.ContinueOnError)
	flags.SetOutput(io.Discard)
	o := vppsim.Options{Log: slog.New(slog.NewTextHandler(messages, nil)), Unserved: true}
	o.TAP = vppsim.LinuxTAP(o.Log)
	workers := flags.Uint("workers", 0, "")
	flags.StringVar(&o.Socket, "socket", "/run/vpp/api.sock", "")
	flags.StringVar(&o.StatsSocket, "stats", "", "")
	flags.StringVar(&o.Release, "release", "", "")
	flags.Func("hardware", "", names(&o.Hardware))
	flags.Func("without", "", names(&o.Without))
	if flags.Parse(args) != nil {
		return errUsage
	}
	switch command := flags.Args(); {
	case len(command) == 0:
		o.Workers = uint32(*workers)
		return serve(ctx, o, out)
	case command[0] == "show":
		return show(ctx, o.Socket, strings.Join(command, " "), out)
	}
	return errUsage
}

// names takes a list of names.
func names(to *[]string) func(string) error {
	return func(list string) error {
		*to = strings.Split(list, ",")
		return nil
	}
}

// serve is a simulated VPP until ctx ends.
func serve(ctx context.Context, o vppsim.Options, out io.Writer) error {
	// Two of them would take turns in removing each other's socket.
	if other, err := net.Dial("unix", o.Socket); err == nil {
		other.Close()
		return fmt.Errorf("there is a VPP at %s already: choose another -socket", o.Socket)
	}
	if err := os.MkdirAll(filepath.Dir(o.Socket), 0o755); err != nil {
		return err
	}
	sim, err := vppsim.New(o)
	if err != nil {
		return err
	}
	if err := sim.Start(); err != nil {
		return err
	}
	defer sim.Kill()
	fmt.Fprintf(out, "simulated VPP %s at %s: it forwards no packet\n", sim.Release(), o.Socket)
	<-ctx.Done()
	return nil
}

// show prints a page of the VPP at socket, below the version that it says it has.
func show(ctx context.Context, socket, command string, out io.Writer) error {
	// A VPP that hangs must not hang the command.
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	c, err := conn.Dial(ctx, socket, "vppsim")
	if err != nil {
		return fmt.Errorf("no VPP runs there: %w", err)
	}
	go func() { _ = c.Run(ctx) }() // calls say why it ended
	var version vpe.ShowVersionReply
	if err := c.Call(ctx, &vpe.ShowVersion{}, &version); err != nil {
		return err
	}
	var page vlib.CliInbandReply
	if err := c.Call(ctx, &vlib.CliInband{Cmd: command}, &page); err != nil {
		return err
	}
	_, err = fmt.Fprintf(out, "VPP %s, %s:\n%s", version.Version, command, page.Reply)
	return err
}
