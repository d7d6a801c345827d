package testkit

import (
	"errors"
	"hash/crc32"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// GoBuild returns a command of go build with the options of a release: the programs are static. make test has them too, so
// it compiles each package once. Without grpcnotrace, gRPC brings templates into the program, and with them every exported
// method of every type.
func GoBuild(t testing.TB, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(t.Context(), "go", append([]string{"build", "-tags=grpcnotrace", "-trimpath"}, args...)...)
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	return cmd
}

// Build builds the programs of some packages as for a release, such as "../cmd/agent", and returns a folder of the test's
// own that has copies of them. To link one takes seconds of processor time, so the packages share what one of them has
// linked: go build links nothing that is up to date.
func Build(t testing.TB, options []string, packages ...string) (bin string) {
	t.Helper()
	shared := filepath.Join(repoRoot(t), ".cache", "programs")
	lock, err := lockFolder(shared)
	if err != nil {
		t.Fatal(err)
	}
	defer lock.Close()
	arguments := append([]string{"-ldflags=-s -w", "-o", shared + "/"}, options...)
	if out, err := GoBuild(t, append(arguments, packages...)...).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	bin = t.TempDir()
	for _, one := range packages {
		path, err := filepath.Abs(one)
		if err == nil {
			err = copyProgram(filepath.Join(shared, filepath.Base(path)), filepath.Join(bin, filepath.Base(path)))
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	return bin
}

// lockFolder makes a folder, and locks it until the file is closed.
func lockFolder(dir string) (*os.File, error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	f, err := os.Open(dir)
	if err != nil {
		return nil, err
	}
	if err := unix.Flock(int(f.Fd()), unix.LOCK_EX); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// copyProgram copies a program, and gives the original a time that is made of its contents. go build gives it the
// present time even where it links nothing, and go test takes a file with another time for another file: it would not
// use the results that it has kept of tests that open it.
func copyProgram(from, to string) error {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := os.OpenFile(to, os.O_CREATE|os.O_WRONLY|os.O_EXCL, 0o755)
	if err != nil {
		return err
	}
	sum := crc32.NewIEEE()
	_, err = io.Copy(io.MultiWriter(out, sum), in)
	then := time.Unix(int64(sum.Sum32()>>2), 0) // before 2004; go test keeps nothing of files that are younger than some seconds
	return errors.Join(err, out.Close(), os.Chtimes(from, then, then))
}
