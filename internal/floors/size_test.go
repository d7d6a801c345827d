package floors

import (
	"go/ast"
	"go/token"
	"os"
	"strings"
	"testing"
)

// Beyond these sizes nobody finds their way in a package. It should be divided by subject.
const (
	mostLines = 3000 // with code, without tests
	mostNames = 71   // exported, without methods and fields
)

func TestNoPackageIsTooLarge(t *testing.T) {
	for _, p := range packages(t) {
		lines, names := 0, 0
		for name, file := range p.Files {
			if ast.IsGenerated(file) {
				continue
			}
			lines += linesOf(t, p.Fset, file, "../../"+name)
			names += exportedNames(file)
		}
		if lines > mostLines {
			t.Errorf("%s has %d lines of code; expected at most %d", p.Dir, lines, mostLines)
		}
		if names > mostNames {
			t.Errorf("%s has %d exported names; expected at most %d", p.Dir, names, mostNames)
		}
	}
}

// linesOf returns the number of lines of a file that are neither empty nor only a comment.
func linesOf(t *testing.T, set *token.FileSet, file *ast.File, path string) (n int) {
	t.Helper()
	source, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	comment := map[int]bool{} // by line that a comment begins or continues
	for _, group := range file.Comments {
		for line := set.Position(group.Pos()).Line; line <= set.Position(group.End()).Line; line++ {
			comment[line] = true
		}
	}
	for i, line := range strings.Split(string(source), "\n") {
		line = strings.TrimSpace(line)
		if line != "" && !(comment[i+1] && (strings.HasPrefix(line, "//") || strings.HasPrefix(line, "/*") || strings.HasPrefix(line, "*"))) {
			n++
		}
	}
	return n
}

// exportedNames returns the number of exported declarations of a file, without methods.
func exportedNames(file *ast.File) (n int) {
	count := func(id *ast.Ident) {
		if id.IsExported() {
			n++
		}
	}
	for _, decl := range file.Decls {
		switch d := decl.(type) {
		case *ast.FuncDecl:
			if d.Recv == nil {
				count(d.Name)
			}
		case *ast.GenDecl:
			for _, spec := range d.Specs {
				switch s := spec.(type) {
				case *ast.TypeSpec:
					count(s.Name)
				case *ast.ValueSpec:
					for _, id := range s.Names {
						count(id)
					}
				}
			}
		}
	}
	return n
}
