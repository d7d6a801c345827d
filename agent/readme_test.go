package agent

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/keyplane/keyplane/models"
	"github.com/keyplane/keyplane/models/structured"
	"github.com/keyplane/keyplane/models/structured/document"
)

// The values that the README shows are valid, under the keys it shows them with.
func TestREADMEValues(t *testing.T) {
	text, err := os.ReadFile("../README.md")
	if err != nil {
		t.Fatal(err)
	}
	blocks := regexp.MustCompile("(?s)```yaml\n(.*?)```").FindAllSubmatch(text, -1)
	puts := regexp.MustCompile(`etcdctl put /vnf-agent/vpp1/(\S+) '(.*)'`).FindAllSubmatch(text, -1)
	if len(blocks) == 0 || len(puts) == 0 {
		t.Fatalf("README has %d YAML blocks and %d etcdctl puts: did their form change?", len(blocks), len(puts))
	}
	for _, block := range blocks {
		items, errs := structured.For(models.BuiltIn()).Parse(block[1], document.YAML)
		if len(items) == 0 || len(errs) > 0 {
			t.Errorf("%d items, errors %v in\n%s", len(items), errs, block[1])
		}
		for _, item := range items {
			if item.Err != nil {
				t.Errorf("%s: %v", item.Key, item.Err)
			}
		}
	}
	for _, put := range puts {
		if _, err := models.BuiltIn().Decode(string(put[1]), put[2]); err != nil {
			t.Error(err)
		}
	}
}

// The flags that the documents show exist.
func TestDocumentedFlags(t *testing.T) {
	for _, name := range []string{"../README.md", "../ARCHITECTURE.md", "../examples/first-light/README.md"} {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range regexp.MustCompile(`\bagent((?: -[-a-z]+=\S+)+)`).FindAllSubmatch(text, -1) {
			if _, err := (Options{Args: strings.Fields(string(m[1])), Env: environment(nil)}).parse(); err != nil {
				t.Errorf("%s: agent%s: %v", name, m[1], err)
			}
		}
	}
}
