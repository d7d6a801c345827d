package floors

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// tours are the documents that lead through the code. The first three name what is inside of packages, too.
func tours() []string {
	return []string{"ARCHITECTURE.md", "docs/walk.md", "docs/performance.md", "docs/flows.md", "CONTRIBUTING.md", "SECURITY.md"}
}

// inCode matches what stands between backticks in a sentence.
var inCode = regexp.MustCompile("`([^`\n]+)`")

// goName matches a name of Go that others can see, perhaps with its package or type, and perhaps called.
var goName = regexp.MustCompile(`^(?:([a-z][a-z0-9]*)\.)?([A-Z]\w*[a-z]\w*)(?:\.([A-Z]\w*))?(?:\(\))?$`)

// lowerName matches a name of Go that only its package can see, or the name of a package.
var lowerName = regexp.MustCompile(`^[a-z]\w*$`)

// otherWords returns what documents have in backticks that is no name of Go.
func otherWords() []string {
	return []string{"grpcnotrace", "inuse_space"} // a build tag; a measure of a profile
}

// Each function, type, field and method that these documents name exists. A name with a package is in that package, and
// one with a type belongs to that type.
func TestNamesInTours(t *testing.T) {
	known := declarations(t)
	checked := 0
	for _, doc := range tours() {
		text, err := os.ReadFile(filepath.Join("../..", doc))
		if err != nil {
			t.Fatal(err)
		}
		prose := regexp.MustCompile("(?s)```.*?```").ReplaceAllString(string(text), "")
		for _, code := range inCode.FindAllStringSubmatch(prose, -1) {
			if lowerName.MatchString(code[1]) && slices.Contains(tours()[:3], doc) {
				if !known[code[1]] && !slices.Contains(otherWords(), code[1]) {
					t.Errorf("%s names %s, which no file of Go declares", doc, code[0])
				}
				continue
			}
			parts := goName.FindStringSubmatch(code[1])
			if parts == nil {
				continue
			}
			checked++
			name := strings.TrimPrefix(strings.Join(parts[1:], "."), ".")
			if name = strings.TrimSuffix(name, "."); !known[name] && !known["Benchmark"+name] {
				t.Errorf("%s names %s, which no file of Go declares", doc, code[0])
			}
		}
	}
	if checked < 20 {
		t.Errorf("only %d names were found: did their form change?", checked)
	}
}

// declarations returns all names that the files of this module declare: Name, Type.Method and Type.Field, each also
// with its package before it. Methods and fields are there by their own names, too.
func declarations(t *testing.T) map[string]bool {
	t.Helper()
	out := map[string]bool{}
	for _, path := range filesOf(t, func(path string) bool { return strings.HasSuffix(path, ".go") }) {
		file, err := parser.ParseFile(token.NewFileSet(), filepath.Join("../..", path), nil, parser.SkipObjectResolution)
		if err != nil {
			continue // of test data
		}
		out[file.Name.Name] = true
		for folder := range strings.SplitSeq(filepath.Dir(path), "/") {
			out[folder] = true
		}
		add := func(names ...string) {
			name := strings.Join(names, ".")
			out[name], out[file.Name.Name+"."+name], out[names[len(names)-1]] = true, true, true
		}
		for _, decl := range file.Decls {
			switch d := decl.(type) {
			case *ast.FuncDecl:
				if d.Recv == nil {
					add(d.Name.Name)
				} else {
					add(receiver(d.Recv.List[0].Type), d.Name.Name)
				}
			case *ast.GenDecl:
				for _, spec := range d.Specs {
					specify(spec, add)
				}
			}
		}
	}
	return out
}

// specify adds what a declaration of types, constants or variables declares.
func specify(spec ast.Spec, add func(...string)) {
	switch s := spec.(type) {
	case *ast.ValueSpec:
		for _, name := range s.Names {
			add(name.Name)
		}
	case *ast.TypeSpec:
		add(s.Name.Name)
		for _, field := range members(s.Type) {
			for _, name := range field.Names {
				add(s.Name.Name, name.Name)
			}
		}
	}
}

// members returns the fields of a struct, or the methods of an interface.
func members(t ast.Expr) []*ast.Field {
	switch t := t.(type) {
	case *ast.StructType:
		return t.Fields.List
	case *ast.InterfaceType:
		return t.Methods.List
	}
	return nil
}

// receiver returns the name of the type of a method.
func receiver(t ast.Expr) string {
	switch t := t.(type) {
	case *ast.StarExpr:
		return receiver(t.X)
	case *ast.IndexExpr:
		return receiver(t.X)
	case *ast.IndexListExpr:
		return receiver(t.X)
	case *ast.Ident:
		return t.Name
	}
	return ""
}

// The walk names each file once, and its way has as many as it says.
func TestWalk(t *testing.T) {
	text, err := os.ReadFile("../../docs/walk.md")
	if err != nil {
		t.Fatal(err)
	}
	way, _, _ := strings.Cut(string(text), "\n## A restart beside VPP\n")
	if n := strings.Count(way, "\n| ["); !strings.Contains(way, fmt.Sprintf("through %d files", n)) {
		t.Errorf("the way has %d files, and the page begins with another number", n)
	}
	seen := map[string]bool{}
	for _, link := range regexp.MustCompile(`\[([a-z][\w/]+\.go)\]\(`).FindAllStringSubmatch(string(text), -1) {
		if seen[link[1]] {
			t.Errorf("%s is named twice", link[1])
		}
		seen[link[1]] = true
	}
}

// The README stays short: what is said in it at length belongs into one of the documents that it names.
func TestREADMEIsShort(t *testing.T) {
	text, err := os.ReadFile("../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(string(text), "\n"); n > 80 {
		t.Errorf("README.md has %d lines; expected at most 80", n)
	}
}
