package ui_test

import (
	"bytes"
	"compress/gzip"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/keyplane/keyplane/northbound/rest/internal/ui"
)

// TestTheBuildIsThatOfTheSources needs no npm: the build has the hash of its sources.
func TestTheBuildIsThatOfTheSources(t *testing.T) {
	want, err := ui.Sum(os.DirFS("."))
	if err != nil {
		t.Fatal(err)
	}
	got, err := os.ReadFile("dist/sources.sha256")
	if err != nil || strings.TrimSpace(string(got)) != want {
		t.Errorf("dist is the build of other sources (%s instead of %s; %v): run make generate, with npm installed", got, want, err)
	}
}

// TestThePageIsSmall bounds the bytes that a browser loads.
func TestThePageIsSmall(t *testing.T) {
	names, err := filepath.Glob("dist/*")
	if err != nil || len(names) < 4 {
		t.Fatal(names, err)
	}
	var packed bytes.Buffer
	w := gzip.NewWriter(&packed)
	for _, name := range names {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := w.Write(text); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if packed.Len() > 100_000 {
		t.Errorf("the page has %d bytes; at most 100,000 are allowed", packed.Len())
	}
}

// TestNoTextBecomesHTML looks for what would make a text of a value a program. The rules of
// the policy are the second line of defence.
func TestNoTextBecomesHTML(t *testing.T) {
	names, err := filepath.Glob("src/*.ts*")
	if err != nil || len(names) < 10 {
		t.Fatal(names, err)
	}
	for _, name := range names {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		for _, word := range []string{"innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval(", "new Function", "http://", "https://"} {
			if bytes.Contains(text, []byte(word)) {
				t.Errorf("%s has %s", name, word)
			}
		}
	}
	page, err := os.ReadFile("src/index.html")
	if err != nil {
		t.Fatal(err)
	}
	for _, word := range []string{"<style", "<script>", "style=", "onclick", "//"} {
		if bytes.Contains(page, []byte(word)) {
			t.Errorf("the document has %s, which its policy forbids", word)
		}
	}
}
