package testkit

import (
	"io"
	"net/rpc"
	"os"
	"os/exec"
	"slices"
	"sync"
	"syscall"
	"testing"
)

// StartAgain starts this test program again, with a variable of the environment that tells it to call ServeCalls. It is the
// last argument of the command with, such as "nice", if there is one. Calls to it are those of net/rpc, on its standard input and
// output. stop ends it, and returns how it has ended. So does the end of the test, which then fails on an error.
func StartAgain(t testing.TB, variable, value string, with ...string) (client *rpc.Client, stop func() error) {
	t.Helper()
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	command := slices.Concat(with, []string{program})
	cmd := exec.Command(command[0], command[1:]...)
	cmd.Env = append(os.Environ(), variable+"="+value)
	cmd.Stderr = os.Stderr // it names what went wrong
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	client = rpc.NewClient(stream{out, in})
	stop = sync.OnceValue(func() error {
		client.Close() // the process ends then
		return cmd.Wait()
	})
	t.Cleanup(func() {
		if err := stop(); err != nil {
			t.Errorf("the process of %s: %v", variable, err)
		}
	})
	return client, stop
}

// ServeCalls answers the calls of the process that has started this one, until that ends them. The exported methods of receiver
// are called with this name before theirs, each in a goroutine of its own.
func ServeCalls(name string, receiver any) error {
	server := rpc.NewServer()
	if err := server.RegisterName(name, receiver); err != nil {
		return err
	}
	server.ServeConn(stream{os.Stdin, os.Stdout})
	return nil
}

// A stream is a connection that consists of two files.
type stream struct {
	io.Reader
	io.WriteCloser
}
