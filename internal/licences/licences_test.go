package licences

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// allowed are the licences under which a module may be part of a program under Apache 2.0, each with a text that
// only it has. The files of MPL modules stay under MPL; programs that use them unchanged need no more than a
// notice.
func allowed() map[string]*regexp.Regexp {
	return map[string]*regexp.Regexp{
		"Apache-2.0": regexp.MustCompile(`Apache License,? Version 2\.0`),
		"MIT":        regexp.MustCompile(`Permission is hereby granted, free of charge, to any person obtaining a copy`),
		"BSD":        regexp.MustCompile(`Redistribution and use in source and binary forms, with or without modification`),
		"ISC":        regexp.MustCompile(`Permission to use, copy, modify, and(/or)? distribute this software`),
		"MPL-2.0":    regexp.MustCompile(`Mozilla Public License,? (Version|version|v\.) ?2\.0`),
	}
}

// forbidden are texts of licences that a program under Apache 2.0 may not contain. A licence that only refers to
// them, as MPL does, is allowed.
func forbidden() *regexp.Regexp {
	return regexp.MustCompile(`(?m)^\s*(GNU (AFFERO |LESSER )?GENERAL PUBLIC LICENSE|Business Source License|Server Side Public License|Elastic License)\s*($|\d)`)
}

// Every module that a shipped program contains has a licence that allows it.
func TestModulesMayBeShipped(t *testing.T) {
	out, err := exec.Command("go", "list", "-deps", "-f", "{{with .Module}}{{if not .Main}}{{.Path}} {{.Dir}}{{end}}{{end}}",
		"../../cmd/agent", "../../cmd/agentctl", "../../cmd/vppsim").Output()
	if err != nil {
		t.Fatal(err)
	}
	modules := map[string]string{}
	for line := range strings.Lines(string(out)) {
		if module, dir, ok := strings.Cut(strings.TrimSpace(line), " "); ok {
			modules[module] = dir
		}
	}
	if len(modules) < 20 {
		t.Fatalf("only %d modules; expected those of all programs", len(modules))
	}
	for module, dir := range modules {
		if found := licencesIn(t, dir); len(found) == 0 {
			t.Errorf("%s: no licence in %s that is known to be compatible with Apache 2.0", module, dir)
		} else {
			t.Log(module, found)
		}
	}
}

// licencesIn returns the allowed licences in the folder of a module. A forbidden text is an error.
func licencesIn(t *testing.T, dir string) (out []string) {
	t.Helper()
	files, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		if !regexp.MustCompile(`(?i)^(un)?(licen[sc]e|copying)`).MatchString(file.Name()) || file.IsDir() {
			continue
		}
		text, err := os.ReadFile(filepath.Join(dir, file.Name()))
		if err != nil {
			t.Fatal(err)
		}
		if bad := forbidden().Find(text); bad != nil {
			t.Errorf("%s/%s: %s", dir, file.Name(), strings.TrimSpace(string(bad)))
		}
		plain := strings.Join(strings.Fields(strings.ReplaceAll(string(text), ">", "")), " ") // some quote the text
		for name, words := range allowed() {
			if words.MatchString(plain) {
				out = append(out, name)
			}
		}
	}
	return out
}

// The check itself finds what it should.
func TestForbiddenTexts(t *testing.T) {
	for text, want := range map[string]bool{
		"                    GNU GENERAL PUBLIC LICENSE\n                       Version 3": true,
		"GNU AFFERO GENERAL PUBLIC LICENSE\n":                                              true,
		"Business Source License 1.1\n":                                                    true,
		"means either the GNU General Public License, Version 2.0, the GNU Lesser":         false,
	} {
		if got := forbidden().MatchString(text); got != want {
			t.Errorf("%q: forbidden is %v", text, got)
		}
	}
}
