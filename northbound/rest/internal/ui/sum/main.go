// Command sum writes the hash of the page's sources, for generate.sh. It runs in their folder.
package main

import (
	"fmt"
	"os"

	"github.com/keyplane/keyplane/northbound/rest/internal/ui"
)

func main() {
	sum, err := ui.Sum(os.DirFS("."))
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	fmt.Fprintln(os.Stdout, sum)
}
