// Command plots draws the main tables of the documents, each figure beside its bar, and the
// samples of a soak:
//
//	go run . ROOT           draws all plots of the checkout ROOT into docs/plots
//	go run . -check ROOT    fails if a plot differs from its table
//
// It reads the figures in the tables themselves, so plot and table cannot disagree. A row
// without a figured bar is not drawn. A row with one must have a figure in the same unit.
//
// It is a module of its own, because the library for plots is only for this command: the
// product and its other tools do not depend on it.
package main

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
)

func main() {
	check := flag.Bool("check", false, "compare the plots instead of writing them")
	flag.Parse()
	if err := run(flag.Arg(0), *check); err != nil {
		fmt.Fprintln(os.Stderr, "plots:", err)
		os.Exit(1)
	}
}

// errStale says that somebody changed a table without make plots.
var errStale = errors.New("differs from its table; run make plots, and commit what it writes")

// run draws all plots, or compares them with those in the checkout.
func run(root string, check bool) error {
	var errs []error
	for _, p := range plots() {
		svg, err := p.draw(root)
		if err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", p.name, err))
			continue
		}
		errs = append(errs, put(filepath.Join(root, "docs", "plots", p.name+".svg"), svg, check))
	}
	return errors.Join(errs...)
}

// put writes a file, or compares it.
func put(path string, text []byte, check bool) error {
	if !check {
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return err
		}
		return os.WriteFile(path, text, 0o644)
	}
	was, err := os.ReadFile(path)
	if err == nil && !bytes.Equal(was, text) {
		err = fmt.Errorf("%s %w", path, errStale)
	}
	return err
}

// A picture is one file in docs/plots.
type picture struct {
	name string
	draw func(root string) ([]byte, error)
}

// plots are all pictures.
func plots() []picture {
	const performance, scale = "docs/performance.md", "docs/scale.md"
	return []picture{
		bars("side-by-side", performance, "Side by side with the older agent", "older agent, default", "older agent, fast", "this agent, in the same run", "this agent now"),
		bars("scheduler", performance, "The scheduler", "measured"),
		bars("stores", performance, "From a store to the verb", "etcd", "Redis", "Consul", "Bolt", "files"),
		bars("vpp", performance, "From etcd to VPP", "measured"),
		bars("services", performance, "Services of VPP", "measured, of GoVPP"),
		bars("grpc", performance, "From gRPC to the verb", "measured"),
		bars("rest", performance, "Reading 100 k values over HTTP", "measured"),
		bars("agent", performance, "The agent", "measured"),
		bars("scale", scale, "Measured: a fleet on one cluster", "etcd, 3 members", "and two grpc-proxies", "Consul, 3 servers", "the same, allow-stale", "Redis Cluster, 3 masters"),
		{"soak-agent", soak},
	}
}

// bars is the plot of a table below a heading, with the columns that have figures.
func bars(name, file, heading string, columns ...string) picture {
	return picture{name, func(root string) ([]byte, error) {
		text, err := os.ReadFile(filepath.Join(root, file))
		if err != nil {
			return nil, err
		}
		t, err := tableBelow(string(text), heading)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", file, err)
		}
		rows, err := t.rows(columns)
		if err != nil {
			return nil, fmt.Errorf("%s: %s: %w", file, heading, err)
		}
		return drawBars(heading, columns, rows)
	}}
}
