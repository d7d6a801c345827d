package yamlplace_test

import (
	"bytes"
	"errors"
	"fmt"
	"testing"

	"go.yaml.in/yaml/v3"

	"github.com/keyplane/keyplane/internal/yamlplace"
)

// The place of a mistake is exact, also where version 3 of the library names another line.
func Example() {
	data := []byte("# a\n# b\nport: 1\ntls:\n    cert-file: x\n  key-file: y\n")
	err := yaml.Unmarshal(data, new(yaml.Node))
	fmt.Println(err)
	at := yamlplace.Of(bytes.NewReader(data), data, err)
	fmt.Printf("%d:%d: %s\n", at.Line, at.Column, at.Msg)
	// Output:
	// yaml: line 2: did not find expected key
	// 6:3: did not find expected key while parsing a block mapping that begins in line 3
}

// Where only version 3 refuses a text, the place is that of its error.
func TestFirstGuess(t *testing.T) {
	data := []byte("port: 1\n")
	for _, test := range []struct {
		err  string
		want yamlplace.Place
	}{
		{"yaml: line 3: no", yamlplace.Place{Line: 3, Msg: "no"}},
		{"yaml: no", yamlplace.Place{Line: 1, Msg: "no"}},
	} {
		if got := yamlplace.Of(bytes.NewReader(data), data, errors.New(test.err)); got != test.want {
			t.Errorf("%q: got %+v, want %+v", test.err, got, test.want)
		}
	}
}
