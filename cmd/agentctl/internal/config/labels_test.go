package config

import (
	"strings"
	"testing"

	"github.com/spf13/pflag"
)

func TestLabels(t *testing.T) {
	for _, tt := range []struct {
		args string // of the flag, separated by spaces; - is an empty one
		want string // the labels, or a part of the error
	}{
		{"a=1,b=2", "a=1,b=2"},
		{"a=1 b", "a=1,b="},
		{"!a,b=x=y", "!a=,b=x=y"},
		{"-", ""},
		{"=x", `"=x" has no name`},
		{"a,,b", `"" has no name`},
		{"!=x", `"!=x" has no name`},
		{"a=1,a=2", "a is there twice"},
		{"a a", "a is there twice"},
	} {
		f := pflag.NewFlagSet("", pflag.ContinueOnError)
		l := labelsFlag(f, "")
		var args []string
		for arg := range strings.FieldsSeq(tt.args) {
			args = append(args, "--labels", strings.TrimPrefix(arg, "-"))
		}
		err := f.Parse(args)
		if err == nil && l.String() != tt.want || err != nil && !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: %s, %v; want %s", tt.args, l, err, tt.want)
		}
	}
}
