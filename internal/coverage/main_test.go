package main

import (
	"bytes"
	"strings"
	"testing"
)

func TestReport(t *testing.T) {
	const profile = `mode: set
example.com/x/good/a.go:1.1,2.2 9 0
example.com/x/good/a.go:1.1,2.2 9 1
example.com/x/good/a.go:3.1,4.2 1 0
example.com/x/bad/b.go:1.1,2.2 1 0
example.com/x/bad/b.go:3.1,4.2 1 3
example.com/x/proto/c.pb.go:1.1,2.2 100 0
`
	all, err := read(strings.NewReader(profile))
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	err = report(&out, all)
	want := " 50.0 %      2 statements  example.com/x/bad  short of 70 %\n" +
		" 90.0 %     10 statements  example.com/x/good\n" +
		" 83.3 %     12 statements  all product packages\n"
	if out.String() != want {
		t.Errorf("got\n%s\nexpected\n%s", &out, want)
	}
	if err == nil || !strings.Contains(err.Error(), "1 packages are below 70 %") {
		t.Errorf("error: %v", err)
	}
	if _, err := read(strings.NewReader("what\n")); err == nil {
		t.Error("a line that is none is no error")
	}
}
