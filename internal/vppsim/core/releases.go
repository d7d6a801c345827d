package core

import (
	_ "embed"
	"fmt"
	"maps"
	"path"
	"reflect"
	"slices"
	"strings"

	"go.fd.io/govpp/api"
	"go.fd.io/govpp/binapi/memclnt"

	"github.com/keyplane/keyplane/internal/vppwire"
)

// releasesTSV lists the messages that differ between releases. A cell says whether a
// release has the definition of 25.10 (=), another definition (x), or no such message (-).
//
//go:embed releases.tsv
var releasesTSV string

// Releases returns the releases that a Server can pose as, the oldest first.
func Releases() []string {
	head, _, _ := strings.Cut(releasesTSV, "\n")
	return strings.Split(head, "\t")[1:]
}

// An entry is a message of the table, with the functions of the VPP that runs now.
type entry struct {
	Message
	name string
}

// A table has the messages of one release and their numbers. The numbers stay the same
// over restarts.
type table struct {
	byID    map[uint16]*entry
	ids     map[reflect.Type]uint16
	entries []memclnt.MessageTableEntry // the form for sockclnt_create_reply
	plugins map[string]bool             // all, also those that are not loaded
}

// firstID is greater than the fixed numbers of sockclnt_create and its reply.
const firstID = 100

// newTable makes the table of a release in which some plugins are not loaded. A message
// that two plugins serve is an error, because only one of them would be called.
func newTable(o Options, messages []Message) (*table, error) {
	column := slices.Index(Releases(), o.Release)
	if column < 0 {
		return nil, fmt.Errorf("simulated VPP: no release %q; expected one of %s", o.Release, strings.Join(Releases(), ", "))
	}
	differs, plugins := differing(column), map[string]bool{}
	for _, p := range loadables() {
		plugins[p.bindings] = true // also one without messages
	}
	t := &table{byID: map[uint16]*entry{}, ids: map[reflect.Type]uint16{}, plugins: plugins}
	for _, m := range messages {
		name, plugin := m.request.GetMessageName(), pluginOf(m.request)
		plugins[plugin] = true
		if differs[name] || slices.Contains(o.Without, plugin) || slices.Contains(o.Lacks, name) {
			continue
		}
		id := t.add(m.request)
		if t.byID[id] != nil {
			return nil, fmt.Errorf("simulated VPP: two plugins serve %s", name)
		}
		t.byID[id] = &entry{m, name}
		for _, answer := range m.answers {
			if !differs[answer.GetMessageName()] {
				t.add(answer)
			}
		}
	}
	if o.Unserved {
		t.addUnserved(o, differs)
	}
	for _, name := range o.Without {
		if !plugins[name] {
			known := strings.Join(slices.Sorted(maps.Keys(plugins)), ", ")
			return nil, fmt.Errorf("simulated VPP: no plugin %q; expected one of %s", name, known)
		}
	}
	return t, nil
}

// serve replaces the functions of all messages by those of a new VPP.
func (t *table) serve(messages []Message) {
	for _, m := range messages {
		if e := t.byID[t.id(m.request)]; e != nil {
			e.Message = m
		}
	}
}

// pluginOf returns the VPP plugin of a message: GoVPP's bindings have one package for each.
func pluginOf(m api.Message) string { return path.Base(reflect.TypeOf(m).Elem().PkgPath()) }

// differing returns the messages that a release lacks or defines in another way than 25.10.
func differing(column int) map[string]bool {
	out := map[string]bool{}
	for line := range strings.Lines(releasesTSV) {
		if fields := strings.Fields(line); len(fields) > column+1 && fields[column+1] != "=" {
			out[fields[0]] = true
		}
	}
	return out
}

// add gives m a number, unless it has one.
func (t *table) add(m api.Message) uint16 {
	kind := reflect.TypeOf(m)
	if id, ok := t.ids[kind]; ok {
		return id
	}
	id := uint16(firstID + len(t.ids))
	t.ids[kind] = id
	t.entries = append(t.entries, memclnt.MessageTableEntry{Index: id, Name: vppwire.Name(m)})
	return id
}

// id returns the number of a message; 0: the release has no such message.
func (t *table) id(m api.Message) uint16 { return t.ids[reflect.TypeOf(m)] }
