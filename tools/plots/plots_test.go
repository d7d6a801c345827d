package main

import (
	"bytes"
	"encoding/xml"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

const checkout = "../.."

// The committed plots are those of the tables.
func TestPlotsAreThoseOfTheTables(t *testing.T) {
	if err := run(checkout, true); err != nil {
		t.Error(err)
	}
}

// Each plot is well-formed, has dark colours, and a document shows it.
func TestPlots(t *testing.T) {
	docs, err := filepath.Glob(checkout + "/docs/*.md")
	if err != nil || len(docs) == 0 {
		t.Fatal("no documents", err)
	}
	var all strings.Builder
	for _, doc := range docs {
		text, err := os.ReadFile(doc)
		if err != nil {
			t.Fatal(err)
		}
		all.Write(text)
	}
	for _, p := range plots() {
		svg, err := p.draw(checkout)
		if err != nil {
			t.Errorf("%s: %v", p.name, err)
			continue
		}
		if !strings.Contains(all.String(), "](plots/"+p.name+".svg)") {
			t.Errorf("no document shows %s", p.name)
		}
		if !bytes.Contains(svg, []byte("prefers-color-scheme: dark")) {
			t.Errorf("%s has no dark colours", p.name)
		}
		for in := xml.NewDecoder(bytes.NewReader(svg)); ; {
			_, err := in.Token()
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				t.Fatalf("%s: %v", p.name, err)
			}
		}
		// Each colour has a dark one: otherwise dark text stays on a dark page.
		for _, found := range regexp.MustCompile(`style="[^"]*?(?:fill|stroke):(#[0-9A-F]{6})`).FindAllSubmatch(svg, -1) {
			if !bytes.Contains(svg, append([]byte(":"), append(found[1], '"', ']')...)) {
				t.Errorf("%s: %s has no dark colour", p.name, found[1])
			}
		}
	}
}

func TestFigures(t *testing.T) {
	for cell, want := range map[string][]figure{
		"314 to 481 k values/s":         {{low: 314e3, high: 481e3, kind: "rate"}},
		"0.43 to 0.47 s, 1.36 times":    {{low: 0.43, high: 0.47, kind: "time"}, {low: 1.36, high: 1.36, kind: "times"}},
		"p50 4.5 to 5.7 us":             {{low: 4.5e-6, high: 5.7e-6, kind: "time"}},
		"58 and 89 us":                  {{low: 58e-6, high: 89e-6, kind: "time"}},
		"1,380 B":                       {{low: 1380, high: 1380, kind: "memory"}},
		"69 to 118 %":                   {{low: 69, high: 118, kind: "share"}},
		"60 s":                          {{low: 60, high: 60, kind: "time"}},
		"not measured: 64 at once":      nil,
		"stuck at 3,086 of 60,002 rows": nil,
	} {
		got := figures(cell)
		for i := range got {
			got[i].text, got[i].before = "", ""
		}
		near := func(a, b figure) bool {
			return a.kind == b.kind && equal(a.low, b.low) && equal(a.high, b.high)
		}
		if !slices.EqualFunc(got, want, near) {
			t.Errorf("%q: %+v, want %+v", cell, got, want)
		}
	}
}

// equal compares numbers that were multiplied by powers of ten.
func equal(a, b float64) bool { return a-b < 1e-9*b && b-a < 1e-9*b || a == b }

func TestCompare(t *testing.T) {
	stores := []string{"etcd", "files"}
	for _, tt := range []struct {
		bar, cell, column string
		low, high         float64 // 0: no point
	}{
		{"250 k values/s", "125 to 500 k values/s", "measured", 0.5, 2}, // more is better
		{"80 % of the rate at 100 k", "40 to 160 %", "measured", 0.5, 2},
		{"p50 50 us, p99 500 us", "p50 25 us, p99 84 us", "measured", 0.5, 0.5},
		{"1.5 times a bare client; files 20 ms", "0.42 ms, 3 times", "etcd", 2, 2},
		{"1.5 times a bare client; files 20 ms", "10 ms", "files", 0.5, 0.5},
		{"1.5 times a bare client; files 20 ms", "10 ms", "etcd", 0, 0}, // that bar is for files
		{"watch, request, and 300 us", "0.65 ms; and 150 us", "measured", 0.65 / 0.3, 0.65 / 0.3},
		{"none to speak of", "0 to 2", "measured", 0, 0},
		{"p50 within 20 %", "p50 4 us", "measured", 0, 0},
	} {
		p := compare(tt.bar, tt.cell, tt.column, stores)
		if p == nil {
			p = &point{}
		}
		if !equal(p.low, tt.low) || !equal(p.high, tt.high) {
			t.Errorf("%q of %q: %v to %v, want %v to %v", tt.cell, tt.bar, p.low, p.high, tt.low, tt.high)
		}
	}
}

func TestTable(t *testing.T) {
	const text = "# X\n\n## Y\n\n| a | b |\n|---|---|\n| 1 | 2 |\n\n## Z\n\n| a | b |\n|---|---|\n| 1 | 2 |\n\nwords\n\n| figure | bar | measured | |\n|---|---|---|---|\n" +
		"| one `x` | 2 s | 1 s, **short** | |\n| two | | 3 s | |\n\n| c | bar |\n|---|---|\n| 5 | 6 s |\n"
	found, err := tableBelow(text, "Z")
	if err != nil || len(found.body) != 2 || found.body[0][0] != "one x" {
		t.Fatalf("%+v, %v", found, err)
	}
	rows, err := found.rows([]string{"measured"})
	if err != nil || len(rows) != 1 || rows[0].points[0].low != 0.5 {
		t.Errorf("%+v, %v", rows, err)
	}
	if _, err := found.rows([]string{"other"}); !errors.Is(err, errNoTable) {
		t.Errorf("a missing column: %v", err)
	}
	found.body[0][2] = "3 MB"
	if _, err := found.rows([]string{"measured"}); !errors.Is(err, errNoFigure) {
		t.Errorf("a figure in another unit: %v", err)
	}
	for _, heading := range []string{"Y", "None"} {
		if _, err := tableBelow(text, heading); !errors.Is(err, errNoTable) {
			t.Errorf("%s: %v", heading, err)
		}
	}
}

// A plot that was not drawn again after its table changed is found.
func TestStalePlot(t *testing.T) {
	path := filepath.Join(t.TempDir(), "plots", "x.svg")
	if err := put(path, []byte("old"), true); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a missing plot: %v", err)
	}
	if err := put(path, []byte("old"), false); err != nil {
		t.Fatal(err)
	}
	if err := put(path, []byte("old"), true); err != nil {
		t.Error(err)
	}
	if err := put(path, []byte("new"), true); !errors.Is(err, errStale) {
		t.Errorf("a stale plot: %v", err)
	}
}

// The modules of this command are under licences that allow to make pictures with them. They
// are no part of a program that is shipped, so a licence that asks for a notice is enough.
func TestLicences(t *testing.T) {
	allowed := map[string]string{
		"BSD":          "Redistribution and use in source and binary forms",
		"OFL-1.1":      "SIL OPEN FONT LICENSE Version 1.1",
		"CC-BY-4.0":    "Creative Commons Attribution 4.0 International Public License",
		"FTL":          "The FreeType License, which is similar to the original BSD license",
		"MIT":          "Permission is hereby granted, free of charge, to any person obtaining a copy",
		"MIT, shorter": "Copyright (c) 2016 Michael Fogleman",
	}
	out, err := exec.Command("go", "list", "-deps", "-f", "{{with .Module}}{{if not .Main}}{{.Path}} {{.Dir}}{{end}}{{end}}", ".").Output()
	if err != nil {
		t.Fatal(err)
	}
	modules := map[string]string{}
	for line := range strings.Lines(string(out)) {
		if module, dir, ok := strings.Cut(strings.TrimSpace(line), " "); ok {
			modules[module] = dir
		}
	}
	if len(modules) < 5 {
		t.Fatalf("only %d modules", len(modules))
	}
	for module, dir := range modules {
		files, err := filepath.Glob(filepath.Join(dir, "LICENSE*"))
		if err != nil {
			t.Fatal(err)
		}
		known := slices.ContainsFunc(files, func(file string) bool {
			text, err := os.ReadFile(file)
			plain := strings.Join(strings.Fields(string(text)), " ")
			for _, words := range allowed {
				if err == nil && strings.Contains(plain, words) {
					return true
				}
			}
			return false
		})
		if !known {
			t.Errorf("%s: no licence in %s that is known to be allowed", module, dir)
		}
	}
}
