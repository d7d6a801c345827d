package graph

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"slices"
	"strings"
	"testing"
)

// editors return what may be changed, after the journal has a copy.
var editors = []string{"edit", "bookkeep", "editVersion", "editEdge", "editClaim", "editResource"}

// changing are the methods that change the state on which they are called.
var changing = []string{"SetFailure", "SetRejection", "retry", "makeRoom"}

// restoring are the functions that put back what the journal has copied.
var restoring = []string{"Graph.saveNode", "Graph.saveVersion"}

// TestStateIsChangedByEditOnly looks in the source for writes to a node, a version or an edge that the journal does not see.
func TestStateIsChangedByEditOnly(t *testing.T) {
	files := token.NewFileSet()
	var all []*ast.File
	entries, err := os.ReadDir(".")
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if strings.HasSuffix(e.Name(), ".go") && !strings.HasSuffix(e.Name(), "_test.go") {
			f, err := parser.ParseFile(files, e.Name(), nil, 0)
			if err != nil {
				t.Fatal(err)
			}
			all = append(all, f)
		}
	}
	guarded := append(fieldsOf(all, "nodeState"), "nodeState", "versionState", "unmet", "refs", "single", "more", "met", "assumed", "claimResult", "lost", "state")
	if len(guarded) < 25 {
		t.Fatalf("the guarded fields are %v", guarded)
	}
	for _, f := range all {
		for _, wrong := range unseenWrites(f, guarded) {
			t.Errorf("%v: the journal does not see this write; use g.edit, or another of %v", files.Position(wrong.Pos()), editors)
		}
	}
}

// TestUnseenWritesAreFound gives the check what it must find, and what it must not.
func TestUnseenWritesAreFound(t *testing.T) {
	for code, want := range map[string]int{
		"n.desired = v":                             1,
		"g.edit(n).desired = v":                     0,
		"s := g.edit(n); s.desired, s.meta = v, m":  0,
		"s := n; s.desired = v":                     1,
		"n.dependents++":                            1,
		"g.bookkeep(n).dependents++":                0,
		"n.errs.SetFailure(nil)":                    1,
		"g.edit(n).errs.SetFailure(nil)":            0,
		"n.retry()":                                 1,
		"c.claimResult = is":                        1,
		"g.editClaim(c).claimResult = is":           0,
		"p := &n.meta; _ = p":                       1,
		"if n.desired == v { g.touch(n) }":          0,
		"n.nodeState = other":                       1,
		"for _, n.actual = range all { g.push(n) }": 1,
	} {
		f, err := parser.ParseFile(token.NewFileSet(), "", "package graph\nfunc (g *Graph) do() {"+code+"}", 0)
		if err != nil {
			t.Fatal(err)
		}
		if got := unseenWrites(f, []string{"desired", "actual", "meta", "dependents", "claimResult", "nodeState"}); len(got) != want {
			t.Errorf("%s: %d writes are found, want %d", code, len(got), want)
		}
	}
}

// fieldsOf returns the names of the fields of a struct.
func fieldsOf(files []*ast.File, name string) (fields []string) {
	for _, f := range files {
		ast.Inspect(f, func(n ast.Node) bool {
			if spec, ok := n.(*ast.TypeSpec); ok && spec.Name.Name == name {
				for _, field := range spec.Type.(*ast.StructType).Fields.List {
					for _, id := range field.Names {
						fields = append(fields, id.Name)
					}
				}
			}
			return true
		})
	}
	return fields
}

// unseenWrites returns the writes in a file to guarded fields that do not go through an editor.
func unseenWrites(f *ast.File, guarded []string) (wrong []ast.Expr) {
	for _, d := range f.Decls {
		fn, ok := d.(*ast.FuncDecl)
		if !ok || fn.Body == nil || slices.Contains(restoring, receiver(fn)+"."+fn.Name.Name) || slices.Contains(editors, fn.Name.Name) {
			continue
		}
		editable := map[string]bool{}
		if own := receiver(fn); own == "nodeState" || own == "versionState" { // whoever calls it has an editor
			editable[fn.Recv.List[0].Names[0].Name] = true
		}
		check := func(e ast.Expr) {
			if selector, ok := e.(*ast.SelectorExpr); ok && slices.Contains(guarded, selector.Sel.Name) && !isEditable(selector.X, editable) {
				wrong = append(wrong, e)
			}
		}
		ast.Inspect(fn.Body, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.AssignStmt:
				if id, ok := n.Lhs[0].(*ast.Ident); ok && n.Tok == token.DEFINE {
					editable[id.Name] = isEditable(n.Rhs[0], nil)
				}
				for _, e := range n.Lhs {
					check(e)
				}
			case *ast.RangeStmt:
				check(n.Key)
				check(n.Value)
			case *ast.IncDecStmt:
				check(n.X)
			case *ast.UnaryExpr:
				if n.Op == token.AND {
					check(n.X)
				}
			case *ast.CallExpr:
				if call, ok := n.Fun.(*ast.SelectorExpr); ok && slices.Contains(changing, call.Sel.Name) && !isEditable(call.X, editable) {
					wrong = append(wrong, call)
				}
			}
			return true
		})
	}
	return wrong
}

// receiver returns the name of the type of a method.
func receiver(fn *ast.FuncDecl) string {
	if fn.Recv == nil {
		return ""
	}
	return typeName(fn.Recv.List[0].Type)
}

func typeName(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.StarExpr:
		return typeName(e.X)
	case *ast.Ident:
		return e.Name
	}
	return ""
}

// isEditable reports that e is reached from what an editor returned.
func isEditable(e ast.Expr, editable map[string]bool) bool {
	switch e := e.(type) {
	case *ast.Ident:
		return editable[e.Name]
	case *ast.SelectorExpr:
		return isEditable(e.X, editable)
	case *ast.CallExpr:
		called, ok := e.Fun.(*ast.SelectorExpr)
		return ok && slices.Contains(editors, called.Sel.Name)
	}
	return false
}
