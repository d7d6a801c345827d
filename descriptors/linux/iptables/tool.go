package iptables

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"

	"github.com/keyplane/keyplane/descriptors/linux/netns"
)

// A backend reads and writes the rules of a namespace.
type backend interface {
	// read returns the tables of one IP version. Tables that nobody uses may be missing.
	read(ctx context.Context, space *netns.Space, ipv6 bool) (listing, error)
	// apply applies a batch: all of it or nothing. The error is a *batchError if one line
	// is at fault.
	apply(ctx context.Context, space *netns.Space, b *batch) error
}

// ErrNoProgram reports that the host has no iptables.
var ErrNoProgram = errors.New("the host has no iptables: install it")

// A batchError is the refusal of a batch. line is the line at fault, counted from 1, or 0.
type batchError struct {
	line int
	text string
}

func (e *batchError) Error() string { return e.text }

// programs is the backend that runs the programs of the host. So it uses the same kernel
// interface, nf_tables or the legacy one, as the administrator's iptables command.
type programs struct{}

// choose returns the backend for this host: its programs, or nftables without them.
func choose() backend {
	if _, err := find("iptables-restore"); err != nil {
		return netfilter{}
	}
	return programs{}
}

// folders are searched besides PATH: services often run without sbin in it.
func folders() []string { return []string{"/usr/sbin", "/sbin", "/usr/local/sbin"} }

// find returns the path of a program. The error wraps ErrNoProgram.
func find(name string) (string, error) {
	if path, err := exec.LookPath(name); err == nil {
		return path, nil
	}
	for _, dir := range folders() {
		path := filepath.Join(dir, name)
		if info, err := os.Stat(path); err == nil && info.Mode()&0o111 != 0 {
			return path, nil
		}
	}
	return "", fmt.Errorf("%s: %w", name, ErrNoProgram)
}

// read implements backend.
func (programs) read(ctx context.Context, space *netns.Space, ipv6 bool) (listing, error) {
	has, err := space.HasRules()
	if err != nil || !has {
		return listing{}, err
	}
	out, err := run(ctx, space, "", table{ipv6: ipv6}.program()+"-save")
	if err != nil {
		return nil, err
	}
	return parse(out), nil
}

// apply implements backend. -w waits for the lock of iptables-legacy; other variants need no
// lock and ignore it.
func (programs) apply(ctx context.Context, space *netns.Space, b *batch) error {
	_, err := run(ctx, space, b.text(), b.table.program()+"-restore", "--noflush", "-w", "10")
	return err
}

// run runs a program inside the namespace and returns its output. A failed program gives a
// *batchError, and a cancelled context the context's error.
func run(ctx context.Context, space *netns.Space, input, name string, args ...string) (string, error) {
	path, err := find(name)
	if err != nil {
		return "", err
	}
	cmd := exec.CommandContext(ctx, path, args...)
	// Messages are parsed, so they must not be translated.
	cmd.Env = append(os.Environ(), "LC_ALL=C")
	var out, said bytes.Buffer
	cmd.Stdin, cmd.Stdout, cmd.Stderr = strings.NewReader(input), &out, &said
	err = space.Start(cmd)
	if err != nil {
		return "", fmt.Errorf("starting %s: %w", name, err)
	}
	err = cmd.Wait()
	if err == nil {
		return out.String(), nil
	}
	if ctx.Err() != nil {
		return "", fmt.Errorf("%s: %w", name, ctx.Err())
	}
	text := complaint(said.String())
	if text == "" {
		text = err.Error()
	}
	return "", &batchError{lineOf(text), name + ": " + text}
}

// preamble is the beginning of a message that names the program once more.
var preamble = regexp.MustCompile(`^ip6?tables\S*( v[\d.]+ \(\w+\))?:\s*`)

// complaint returns the lines of an error that say something, as one line.
func complaint(said string) string {
	var lines []string
	for one := range strings.Lines(said) {
		one = strings.TrimSpace(preamble.ReplaceAllString(one, ""))
		if one != "" && !strings.HasPrefix(one, "Try `") && !strings.HasPrefix(one, "# Warning") {
			lines = append(lines, one)
		}
	}
	return strings.Join(lines, "; ")
}

// faultyLine finds the line in "line 3 failed", "Error occurred at line: 3" and "line 3:
// RULE_APPEND failed".
var faultyLine = regexp.MustCompile(`\bline:? (\d+)`)

// lineOf returns the line that a message complains about, or 0.
func lineOf(text string) int {
	m := faultyLine.FindStringSubmatch(text)
	if m == nil {
		return 0
	}
	n, _ := strconv.Atoi(m[1]) // 0 if it is too large
	return n
}
