package floors

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
)

const module = "github.com/keyplane/keyplane/"

// A pkg is what one folder holds: parsed files, tests apart, as paths relative to
// the root of the module.
type pkg struct {
	Dir   string
	Fset  *token.FileSet
	Files map[string]*ast.File
}

// Imports returns which folders of this module p imports, and from which file.
func (p *pkg) Imports() map[string]string {
	out := map[string]string{}
	for name, file := range p.Files {
		for _, spec := range file.Imports {
			path, _ := strconv.Unquote(spec.Path.Value)
			if dir, ours := strings.CutPrefix(path, module); ours {
				out[dir] = name
			}
		}
	}
	return out
}

var load = sync.OnceValues(func() ([]*pkg, error) {
	root, err := filepath.Abs("../..")
	if err != nil {
		return nil, err
	}
	byDir := map[string]*pkg{}
	err = filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if entry.IsDir() {
			if path != root && notOurs(path, entry.Name()) {
				return filepath.SkipDir
			}
			return nil
		}
		rel, _ := filepath.Rel(root, path)
		return parse(byDir, rel, path)
	})
	var out []*pkg
	for _, p := range byDir {
		out = append(out, p)
	}
	slices.SortFunc(out, func(a, b *pkg) int { return strings.Compare(a.Dir, b.Dir) })
	return out, err
})

// notOurs tells the folders that hold no package of this module: hidden ones,
// test data, and modules of their own.
func notOurs(path, name string) bool {
	_, err := os.Stat(filepath.Join(path, "go.mod"))
	return strings.HasPrefix(name, ".") || name == "testdata" || err == nil
}

func parse(byDir map[string]*pkg, rel, path string) error {
	if !strings.HasSuffix(rel, ".go") || strings.HasSuffix(rel, "_test.go") {
		return nil
	}
	dir := filepath.Dir(rel)
	p := byDir[dir]
	if p == nil {
		p = &pkg{Dir: dir, Fset: token.NewFileSet(), Files: map[string]*ast.File{}}
		byDir[dir] = p
	}
	file, err := parser.ParseFile(p.Fset, path, nil, parser.SkipObjectResolution|parser.ParseComments)
	if err == nil {
		p.Files[rel] = file
	}
	return err
}

func packages(t *testing.T) []*pkg {
	t.Helper()
	all, err := load()
	if err != nil {
		t.Fatal(err)
	}
	if len(all) < 5 {
		t.Fatalf("found only %d packages: is this the module's tree?", len(all))
	}
	return all
}
