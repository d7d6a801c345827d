package floors

import (
	"go/ast"
	"go/parser"
	"go/token"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// testCode lists the packages of test code: harnesses and suites that several test packages share. Only they may
// import "testing" outside of _test.go files. Their package comments say that they are test code.
func testCode() []string {
	return []string{
		"descriptors/linux/internal/verbs",
		"descriptors/linux/iptables/internal/ruletext/cases",
		"descriptors/vpp/internal/existing",
		"descriptors/vpp/internal/simulated",
		"internal/faults",
		"internal/faults/stores",
		"internal/fleet",
		"internal/testkit",
		"internal/testkit/browser",
		"internal/testkit/draw",
		"internal/testkit/readme",
		"internal/testkit/session",
		"kvdbsync/conformance",
		"scheduler/conformance",
	}
}

// A program that links "testing" has its flags, and code that ends tests. So product code must not reach it, neither
// directly nor through test code.
func TestProductCodeDoesNotImportTesting(t *testing.T) {
	seen := []string{}
	for _, p := range packages(t) {
		if slices.Contains(testCode(), p.Dir) {
			seen = append(seen, p.Dir)
			if !strings.Contains(docOf(p), "test code") {
				t.Errorf("%s: the package comment must say that this is test code", p.Dir)
			}
			continue
		}
		for _, bad := range testImports(p) {
			t.Errorf("%s: product code may not import test code; a package of test helpers needs a line in testCode()", bad)
		}
	}
	for _, dir := range testCode() {
		if !slices.Contains(seen, dir) {
			t.Errorf("testCode() lists %s, but there is no such package", dir)
		}
	}
}

// testImports returns the imports of "testing" and of test code, each as "file imports path".
func testImports(p *pkg) (out []string) {
	for name, file := range p.Files {
		for _, spec := range file.Imports {
			path, _ := strconv.Unquote(spec.Path.Value)
			ours, _ := strings.CutPrefix(path, module)
			if path == "testing" || strings.HasPrefix(path, "testing/") || slices.Contains(testCode(), ours) {
				out = append(out, name+" imports "+path)
			}
		}
	}
	return out
}

// docOf returns a package's comment, which may be in any of its files.
func docOf(p *pkg) string {
	var docs []string
	for _, file := range p.Files {
		docs = append(docs, oneLine(file.Doc))
	}
	return strings.Join(docs, "\n")
}

func oneLine(doc *ast.CommentGroup) string { return strings.Join(strings.Fields(doc.Text()), " ") }

// The rule finds the imports that it is about.
func TestTestImports(t *testing.T) {
	p := parsed(t, `package p; import ("fmt"; "testing"; "testing/fstest"; "github.com/keyplane/keyplane/kvdbsync/conformance"; "github.com/keyplane/keyplane/kvdbsync")`)
	want := []string{"p.go imports testing", "p.go imports testing/fstest", "p.go imports github.com/keyplane/keyplane/kvdbsync/conformance"}
	if got := testImports(p); !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}

func parsed(t *testing.T, source string) *pkg {
	t.Helper()
	set := token.NewFileSet()
	file, err := parser.ParseFile(set, "p.go", source, 0)
	if err != nil {
		t.Fatal(err)
	}
	return &pkg{Dir: "p", Fset: set, Files: map[string]*ast.File{"p.go": file}}
}
