package vpp_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"go.fd.io/govpp/api"
)

// numbers are the errors of VPP that have a meaning to the descriptors.
var numbers = map[string]api.VPPApiError{
	"ACL_IN_USE_INBOUND": api.ACL_IN_USE_INBOUND, "ACL_IN_USE_OUTBOUND": api.ACL_IN_USE_OUTBOUND,
	"ADDRESS_FOUND_FOR_INTERFACE": api.ADDRESS_FOUND_FOR_INTERFACE, "ADDRESS_IN_USE": api.ADDRESS_IN_USE,
	"ADDRESS_NOT_FOUND_FOR_INTERFACE": api.ADDRESS_NOT_FOUND_FOR_INTERFACE, "BD_ALREADY_EXISTS": api.BD_ALREADY_EXISTS,
	"BD_IN_USE": api.BD_IN_USE, "CANNOT_ENABLE_DISABLE_FEATURE": api.CANNOT_ENABLE_DISABLE_FEATURE,
	"DUPLICATE_IF_ADDRESS": api.DUPLICATE_IF_ADDRESS, "EAGAIN": api.EAGAIN, "ENTRY_ALREADY_EXISTS": api.ENTRY_ALREADY_EXISTS,
	"FEATURE_ALREADY_DISABLED": api.FEATURE_ALREADY_DISABLED, "FEATURE_DISABLED": api.FEATURE_DISABLED,
	"IF_ALREADY_EXISTS": api.IF_ALREADY_EXISTS, "INSTANCE_IN_USE": api.INSTANCE_IN_USE, "INVALID_INTERFACE": api.INVALID_INTERFACE,
	"INVALID_REGISTRATION": api.INVALID_REGISTRATION, "INVALID_SW_IF_INDEX": api.INVALID_SW_IF_INDEX, "INVALID_VALUE": api.INVALID_VALUE,
	"INVALID_VLAN_TAG_COUNT": api.INVALID_VLAN_TAG_COUNT, "IP6_NOT_ENABLED": api.IP6_NOT_ENABLED, "NAME_SERVER_NOT_FOUND": api.NAME_SERVER_NOT_FOUND,
	"NO_MATCHING_INTERFACE": api.NO_MATCHING_INTERFACE, "NO_SUCH_ENTRY": api.NO_SUCH_ENTRY, "NO_SUCH_FIB": api.NO_SUCH_FIB,
	"SUBIF_ALREADY_EXISTS": api.SUBIF_ALREADY_EXISTS, "SYSCALL_ERROR_1": api.SYSCALL_ERROR_1, "SYSCALL_ERROR_2": api.SYSCALL_ERROR_2,
	"TUNNEL_EXIST": api.TUNNEL_EXIST, "UNIMPLEMENTED": api.UNIMPLEMENTED, "UNSPECIFIED": api.UNSPECIFIED, "UNSUPPORTED": api.UNSUPPORTED,
	"VALUE_EXIST": api.VALUE_EXIST, "VLAN_ALREADY_EXISTS": api.VLAN_ALREADY_EXISTS,
}

// TestNumbersInREADME compares the table of VPP's errors in the README with the numbers that the code asks for. One that is
// missing there needs a row that says when users meet it, and what the agent does then.
func TestNumbersInREADME(t *testing.T) {
	want, got := slices.Sorted(maps.Keys(numbers)), numbersInCode(t)
	if !slices.Equal(got, want) {
		t.Errorf("the code has\n%q; the list of this test has\n%q", got, want)
	}
	text, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	shown := map[string]api.VPPApiError{}
	for _, row := range regexp.MustCompile("(?m)^\\| (-[-0-9, ]+) \\| (`[A-Z0-9_`, ]+`) \\|").FindAllStringSubmatch(string(text), -1) {
		of, names := strings.Split(row[1], ", "), strings.Split(row[2], ", ")
		if len(of) != len(names) {
			t.Fatalf("a row has the numbers %q and the names %q", of, names)
		}
		for i, name := range names {
			n, err := strconv.Atoi(of[i])
			if err != nil {
				t.Fatal(err)
			}
			shown[strings.Trim(name, "`")] = api.VPPApiError(n)
		}
	}
	if !maps.Equal(shown, numbers) {
		t.Errorf("README.md has the errors\n%v; expected\n%v", shown, numbers)
	}
}

// numbersInCode returns the names of VPP's errors in the code of the descriptors.
func numbersInCode(t *testing.T) []string {
	t.Helper()
	found, isNumber := map[string]bool{}, regexp.MustCompile(`^[A-Z][A-Z0-9_]+$`)
	err := filepath.WalkDir(".", func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && d.Name() == "simulated" {
			return filepath.SkipDir
		}
		if !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return nil
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		ast.Inspect(file, func(n ast.Node) bool {
			s, is := n.(*ast.SelectorExpr)
			if !is {
				return true
			}
			if of, is := s.X.(*ast.Ident); is && of.Name == "api" && isNumber.MatchString(s.Sel.Name) {
				found[s.Sel.Name] = true
			}
			return true
		})
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return slices.Sorted(maps.Keys(found))
}
