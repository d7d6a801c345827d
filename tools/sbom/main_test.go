package main

import (
	"os"
	"path/filepath"
	"testing"

	cdx "github.com/CycloneDX/cyclonedx-go"
	"github.com/CycloneDX/cyclonedx-gomod/pkg/licensedetect"
	"github.com/CycloneDX/cyclonedx-gomod/pkg/licensedetect/local"
	"github.com/rs/zerolog"
)

// counted counts the searches for licences.
type counted struct {
	licensedetect.Detector
	searches int
}

// Detect implements licensedetect.Detector.
func (c *counted) Detect(path, version, dir string) ([]cdx.License, error) {
	c.searches++
	return c.Detector.Detect(path, version, dir)
}

// Two programs with the same modules have the same list, and each module is looked at once.
func TestModulesAreLookedAtOnce(t *testing.T) {
	offline(func(name, value string) error { t.Setenv(name, value); return nil })
	own, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(own)
	if err != nil {
		t.Fatal(err)
	}
	search := &counted{Detector: local.NewDetector(zerolog.Nop())}
	licences := &memory{of: search, known: map[module][]cdx.License{}}
	var lists []string
	for range 2 {
		program := filepath.Join(t.TempDir(), "program")
		if err := os.WriteFile(program, text, 0o600); err != nil {
			t.Fatal(err)
		}
		if err := write(program, "1.2.3", licences); err != nil {
			t.Fatal(err)
		}
		list, err := os.ReadFile(program + ".cdx.json")
		if err != nil {
			t.Fatal(err)
		}
		lists = append(lists, string(list))
	}
	if lists[0] != lists[1] || search.searches != len(licences.known) || search.searches < 10 {
		t.Errorf("%d searches for %d modules; equal lists: %v", search.searches, len(licences.known), lists[0] == lists[1])
	}
	const used = "github.com/rs/zerolog"
	if got := licences.known[module{used, versionOf(used)}]; len(got) != 1 || got[0].ID != "MIT" {
		t.Errorf("the licences of zerolog are %v; expected MIT", got)
	}
}
