// Sbom writes the modules that Go programs contain, with their licences, beside each program: PROGRAM.cdx.json, in the
// form of CycloneDX.
//
//	sbom VERSION PROGRAM...
//
// Package bin of cyclonedx-gomod makes the lists. Its own program does so for one file at a time, and most of that time is
// the search for licences, of modules that all programs of a release share: here each module is looked at once. Nothing
// in a list depends on the time or the machine, and no network is needed.
package main

import (
	"fmt"
	"os"
	"runtime/debug"

	cdx "github.com/CycloneDX/cyclonedx-go"
	"github.com/CycloneDX/cyclonedx-gomod/pkg/generate/bin"
	"github.com/CycloneDX/cyclonedx-gomod/pkg/licensedetect"
	"github.com/CycloneDX/cyclonedx-gomod/pkg/licensedetect/local"
	"github.com/rs/zerolog"
)

func main() {
	if len(os.Args) < 3 {
		fmt.Fprintln(os.Stderr, "usage: sbom VERSION PROGRAM...")
		os.Exit(2)
	}
	offline(os.Setenv)
	licences := &memory{of: local.NewDetector(zerolog.Nop()), known: map[module][]cdx.License{}}
	for _, program := range os.Args[2:] {
		if err := write(program, os.Args[1], licences); err != nil {
			fmt.Fprintf(os.Stderr, "sbom: %s: %v\n", program, err)
			os.Exit(1)
		}
	}
}

// offline makes the command go, which the generator calls, find modules in its cache alone: the build has used them. The
// generator compares their sums with those in the program.
func offline(set func(name, value string) error) {
	for _, name := range []string{"GOPROXY", "GOSUMDB"} {
		if err := set(name, "off"); err != nil {
			panic(err) // the name is valid
		}
	}
}

// write writes the list of a program. Licences are stated, and not only evidence: the files of the modules have them.
// A module whose files are missing is an error; the generator would only leave out its licence.
func write(program, version string, licences *memory) error {
	generator, err := bin.NewGenerator(program, bin.WithLogger(zerolog.Nop()), bin.WithIncludeStdlib(true),
		bin.WithLicenseDetector(licences), bin.WithVersionOverride(version))
	if err != nil {
		return err
	}
	list, err := generator.Generate()
	if err != nil {
		return err
	}
	for i := range *list.Components {
		c := &(*list.Components)[i]
		if _, ok := licences.known[module{c.Name, c.Version}]; !ok && c.Name != "std" {
			return fmt.Errorf("the files of %s@%s are not in Go's module cache", c.Name, c.Version)
		}
		if c.Evidence != nil {
			c.Licenses, c.Evidence = c.Evidence.Licenses, nil
		}
	}
	list.Metadata.Tools = &cdx.ToolsChoice{Tools: &[]cdx.Tool{{Vendor: "CycloneDX", Name: "cyclonedx-gomod", Version: versionOf("github.com/CycloneDX/cyclonedx-gomod")}}} //nolint:staticcheck // readers of all versions of the form know it
	out, err := os.Create(program + ".cdx.json")
	if err != nil {
		return err
	}
	if err := cdx.NewBOMEncoder(out, cdx.BOMFileFormatJSON).SetPretty(true).Encode(list); err != nil {
		out.Close()
		return err
	}
	return out.Close()
}

// versionOf returns the version of a module in this program.
func versionOf(path string) string {
	if about, ok := debug.ReadBuildInfo(); ok {
		for _, m := range about.Deps {
			if m.Path == path {
				return m.Version
			}
		}
	}
	return ""
}

// A memory remembers the licences of each module.
type memory struct {
	of    licensedetect.Detector
	known map[module][]cdx.License
}

type module struct{ path, version string }

// Detect implements licensedetect.Detector.
func (m *memory) Detect(path, version, dir string) ([]cdx.License, error) {
	key := module{path, version}
	if found, ok := m.known[key]; ok {
		return found, nil
	}
	found, err := m.of.Detect(path, version, dir)
	if err == nil {
		m.known[key] = found
	}
	return found, err
}
