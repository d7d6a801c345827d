package main

import (
	"bytes"
	"errors"
	"flag"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
)

var update = flag.Bool("update", false, "write what is shown into the golden files")

func TestScenarios(t *testing.T) {
	for _, s := range scenarios() {
		t.Run(s.name, func(t *testing.T) {
			pictures := t.TempDir()
			var out bytes.Buffer
			synctest.Test(t, func(t *testing.T) {
				if err := do(t.Context(), []string{"-pictures", pictures, s.name}, &out); err != nil {
					t.Fatal(err)
				}
			})
			compare(t, filepath.Join("testdata", s.name+".txt"), out.String())
			picture, err := os.ReadFile(filepath.Join(pictures, s.name+".svg"))
			if err != nil {
				t.Fatal(err)
			}
			compare(t, filepath.Join("../../docs/flows", s.name+".svg"), string(picture))
		})
	}
}

func compare(t *testing.T, golden, got string) {
	t.Helper()
	if *update {
		if err := os.WriteFile(golden, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("got:\n%s\nwant:\n%s", got, want)
	}
}

func TestAllAndLog(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out bytes.Buffer
		if err := do(t.Context(), []string{"-log", "all"}, &out); err != nil {
			t.Fatal(err)
		}
		for _, s := range scenarios() {
			if !strings.Contains(out.String(), s.name+": "+s.about) {
				t.Errorf("all leaves %s out", s.name)
			}
		}
		if !strings.Contains(out.String(), "executed operations") {
			t.Error("-log shows no transaction")
		}
	})
}

func TestUsage(t *testing.T) {
	for _, args := range [][]string{nil, {"-log"}, {"-pictures", "."}, {"no-such"}, {"retry", "no-such"}, {"-x", "retry"}} {
		if err := do(t.Context(), args, io.Discard); !errors.Is(err, errUsage) {
			t.Errorf("%q: %v", args, err)
		}
	}
	var out bytes.Buffer
	usage(&out)
	compare(t, "testdata/usage.txt", out.String())
}

// TestREADME holds what the README shows against what the program prints.
func TestREADME(t *testing.T) {
	readme, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	blocks := strings.Split(string(readme), "```\n")
	if len(blocks) < 3 {
		t.Fatal("the README shows nothing")
	}
	files, err := filepath.Glob("testdata/*.txt")
	if err != nil {
		t.Fatal(err)
	}
	var printed strings.Builder
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		printed.Write(text)
	}
	for i := 1; i < len(blocks); i += 2 {
		if !strings.Contains(printed.String(), blocks[i]) {
			t.Errorf("the program does not print\n%s", blocks[i])
		}
	}
}

// The page of the flows has each scenario, with its command and its picture, in the order of the program.
func TestPageOfFlows(t *testing.T) {
	page, err := os.ReadFile("../../docs/flows.md")
	if err != nil {
		t.Fatal(err)
	}
	rest := string(page)
	for _, s := range scenarios() {
		_, after, found := strings.Cut(rest, "    go run ./examples/mock-southbound "+s.name+"\n")
		_, after, drawn := strings.Cut(after, "](flows/"+s.name+".svg)")
		if !found || !drawn {
			t.Fatalf("docs/flows.md lacks the command or the picture of %s, or has it in another place", s.name)
		}
		rest = after
	}
}
