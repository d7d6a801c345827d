package vppsim

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

// releasesTSV says of each message that is not the same in all releases where it is
// the same as in 25.10 (=), where it has another definition (x), and where it is not (-).
//
//go:embed releases.tsv
var releasesTSV string

// Releases are those that a Sim can pose as, the oldest first.
func Releases() []string {
	head, _, _ := strings.Cut(releasesTSV, "\n")
	return strings.Split(head, "\t")[1:]
}

// An entry is a message that is served.
type entry struct {
	name    string
	request api.Message
	answers []api.Message
	serve   func(c *client, message []byte)
	// refuse answers with a return value, and does nothing else.
	refuse func(c *client, message []byte, retval int32)
}

// A table is the messages of one release, with their numbers.
type table struct {
	byID    map[uint16]*entry
	ids     map[reflect.Type]uint16
	entries []memclnt.MessageTableEntry // as a client gets them
}

// firstID is above the numbers that do not come from the table.
const firstID = 100

// newTable is the table of a release in which some plugins are not loaded.
func newTable(release string, without []string) (*table, error) {
	column := slices.Index(Releases(), release)
	if column < 0 {
		return nil, fmt.Errorf("simulated VPP: no release %q, but %s", release, strings.Join(Releases(), ", "))
	}
	differs, plugins := differing(column), map[string]bool{}
	t := &table{byID: map[uint16]*entry{}, ids: map[reflect.Type]uint16{}}
	for _, e := range allEntries() {
		e.name = e.request.GetMessageName()
		plugins[pluginOf(e.request)] = true
		if differs[e.name] || slices.Contains(without, pluginOf(e.request)) {
			continue
		}
		t.byID[t.add(e.request)] = &e
		for _, m := range e.answers {
			if !differs[m.GetMessageName()] {
				t.add(m)
			}
		}
	}
	for _, name := range without {
		if !plugins[name] {
			return nil, fmt.Errorf("simulated VPP: no plugin %q, but %s", name, strings.Join(slices.Sorted(maps.Keys(plugins)), ", "))
		}
	}
	return t, nil
}

// pluginOf is the plugin that a message is of: the bindings have a package for each.
func pluginOf(m api.Message) string { return path.Base(reflect.TypeOf(m).Elem().PkgPath()) }

// differing are the messages that are not there as in 25.10.
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

func (t *table) id(m api.Message) uint16 { return t.ids[reflect.TypeOf(m)] }
