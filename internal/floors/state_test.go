package floors

import (
	"go/ast"
	"go/token"
	"slices"
	"strings"
	"testing"
)

// makers lists the functions whose results a package variable may hold: what
// they make is never changed.
func makers() []string {
	return []string{
		"errors.New", "fmt.Errorf", "regexp.MustCompile",
		"netip.MustParseAddr", "netip.MustParsePrefix",
		"sync.OnceValue", "sync.OnceValues",
		"strings.NewReplacer", "[]byte",
	}
}

func TestNoInit(t *testing.T) {
	for _, p := range packages(t) {
		for name, file := range p.Files {
			if generated(name) {
				continue
			}
			for _, decl := range file.Decls {
				if f, ok := decl.(*ast.FuncDecl); ok && f.Recv == nil && f.Name.Name == "init" {
					t.Errorf("%s: func init: let whoever needs it call it", p.Fset.Position(f.Pos()))
				}
			}
		}
	}
}

func TestNoMutablePackageVariable(t *testing.T) {
	for _, p := range packages(t) {
		changed := changedNames(p)
		for name, file := range p.Files {
			if generated(name) {
				continue
			}
			for _, v := range variables(file) {
				if why := mutable(v, changed); why != "" {
					t.Errorf("%s: package variable %s: %s", p.Fset.Position(v.name.Pos()), v.name.Name, why)
				}
			}
		}
	}
}

func generated(file string) bool { return strings.HasSuffix(file, ".pb.go") }

type variable struct {
	name     *ast.Ident
	value    ast.Expr // nil where the declaration gives none
	embedded bool     // filled by go:embed
}

func variables(file *ast.File) []variable {
	var out []variable
	for _, decl := range file.Decls {
		gen, ok := decl.(*ast.GenDecl)
		if !ok || gen.Tok != token.VAR {
			continue
		}
		for _, spec := range gen.Specs {
			out = append(out, declared(gen, spec.(*ast.ValueSpec))...)
		}
	}
	return out
}

func declared(gen *ast.GenDecl, spec *ast.ValueSpec) []variable {
	var out []variable
	for i, name := range spec.Names {
		v := variable{name: name, embedded: embeds(gen.Doc) || embeds(spec.Doc)}
		if i < len(spec.Values) {
			v.value = spec.Values[i]
		}
		out = append(out, v)
	}
	return out
}

func embeds(doc *ast.CommentGroup) bool {
	return doc != nil && slices.ContainsFunc(doc.List, func(c *ast.Comment) bool {
		return strings.HasPrefix(c.Text, "//go:embed ")
	})
}

// mutable says what makes v changeable, or nothing.
func mutable(v variable, changed map[string]bool) string {
	switch {
	case v.name.Name == "_" || v.embedded:
		return ""
	case changed[v.name.Name]:
		return "something assigns to it or takes its address: give the state an owner"
	case v.value == nil:
		return "it starts empty, so something means to change it: give the state an owner"
	}
	if call, ok := v.value.(*ast.CallExpr); ok && !slices.Contains(makers(), text(call.Fun)) {
		return "made by " + text(call.Fun) + ", which may hand out state: make it where it is used"
	}
	return ""
}

// changedNames returns the names that the code of p assigns to, in whole or in
// part, or takes the address of. It goes by name alone: a local variable that
// hides a package variable counts too, and is better renamed.
func changedNames(p *pkg) map[string]bool {
	out := map[string]bool{}
	for _, file := range p.Files {
		for _, decl := range file.Decls {
			if f, ok := decl.(*ast.FuncDecl); ok && f.Body != nil {
				ast.Inspect(f.Body, func(n ast.Node) bool {
					noteChange(out, n)
					return true
				})
			}
		}
	}
	return out
}

func noteChange(out map[string]bool, n ast.Node) {
	switch n := n.(type) {
	case *ast.AssignStmt:
		if n.Tok != token.DEFINE {
			for _, left := range n.Lhs {
				out[root(left)] = true
			}
		}
	case *ast.IncDecStmt:
		out[root(n.X)] = true
	case *ast.UnaryExpr:
		if n.Op == token.AND {
			out[root(n.X)] = true
		}
	}
}

// root returns the variable that an expression such as a.b[c].d is part of.
func root(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.Ident:
		return e.Name
	case *ast.SelectorExpr:
		return root(e.X)
	case *ast.IndexExpr:
		return root(e.X)
	case *ast.StarExpr:
		return root(e.X)
	case *ast.ParenExpr:
		return root(e.X)
	}
	return ""
}

// text renders a plain or qualified name; a generic call by what it instantiates.
func text(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.Ident:
		return e.Name
	case *ast.SelectorExpr:
		return text(e.X) + "." + e.Sel.Name
	case *ast.IndexExpr:
		return text(e.X)
	case *ast.ArrayType:
		return "[]" + text(e.Elt)
	}
	return "an expression"
}
