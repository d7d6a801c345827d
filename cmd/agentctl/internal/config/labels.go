package config

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/pflag"
)

// labels is a flag with a list of labels, NAME or NAME=VALUE, separated by commas. A NAME alone has an empty value. An empty
// list is a list without labels.
type labels map[string]string

// labelsFlag adds the flag --labels.
func labelsFlag(f *pflag.FlagSet, usage string) labels {
	l := labels{}
	f.Var(l, "labels", usage)
	return l
}

// String implements pflag.Value.
func (l labels) String() string {
	var all []string
	for _, name := range slices.Sorted(maps.Keys(l)) {
		all = append(all, name+"="+l[name])
	}
	return strings.Join(all, ",")
}

// Type is the word for the value in the help.
func (l labels) Type() string { return "LABELS" }

// Set implements pflag.Value.
func (l labels) Set(text string) error {
	if text == "" {
		return nil
	}
	for label := range strings.SplitSeq(text, ",") {
		name, value, _ := strings.Cut(label, "=")
		if strings.TrimPrefix(name, "!") == "" {
			return fmt.Errorf("%q has no name: expected NAME or NAME=VALUE", label)
		}
		if _, twice := l[name]; twice {
			return fmt.Errorf("%s is there twice: expected each label once", name)
		}
		l[name] = value
	}
	return nil
}
