package iface

import (
	"bufio"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/txtar"

	"github.com/keyplane/keyplane/descriptors/linux/internal/fakelinux"
	"github.com/keyplane/keyplane/descriptors/linux/keys"
	"github.com/keyplane/keyplane/internal/testkit"
)

// The stories in testdata have lines "lacks KIND...", "create VALUE" and
// "delete NAME", where a derived value is NAME followed by its key, and "retrieve".
// The file "output" has the errors and what was retrieved, "host" what there is in
// the end on the fake host.
func TestStoriesOnAFakeHost(t *testing.T) {
	files, err := filepath.Glob("testdata/*.txtar")
	if err != nil || len(files) == 0 {
		t.Fatalf("no stories: %v", err)
	}
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			a, err := txtar.ParseFile(file)
			if err != nil {
				t.Fatal(err)
			}
			s := newStory(t)
			lines := bufio.NewScanner(strings.NewReader(string(a.Comment)))
			for lines.Scan() {
				if line := strings.TrimSpace(lines.Text()); line != "" && !strings.HasPrefix(line, "#") {
					s.step(line)
				}
			}
			got := map[string]string{"output": s.out.String(), "host": s.host.String()}
			for _, f := range a.Files {
				if want := string(f.Data); got[f.Name] != want {
					t.Errorf("%s is\n%s\nwant\n%s", f.Name, got[f.Name], want)
				}
			}
		})
	}
}

type story struct {
	t      *testing.T
	host   *fakelinux.Host
	h      *handler
	b      *bench
	values map[string]*value
	out    strings.Builder
}

func newStory(t *testing.T) *story {
	host := fakelinux.New("/proc/thread-self/ns/net", "/run/netns/red")
	h, b := newHandler(host)
	return &story{t: t, host: host, h: h, b: b, values: map[string]*value{}}
}

func (s *story) step(line string) {
	verb, rest, _ := strings.Cut(line, " ")
	if name, key, part := strings.Cut(rest, " linux/"); part {
		s.say(line, s.derived(verb, "linux/"+key, s.values[name]))
		return
	}
	switch verb {
	case "lacks":
		s.host.Lacks(strings.Fields(rest)...)
	case "create":
		s.say(line, s.create(rest))
	case "delete":
		s.say(line, s.h.delete(s.t.Context(), keyOf(rest), s.values[rest], s.b.All()[rest]))
		delete(s.values, rest)
	case "retrieve":
		var wanted []*value
		for _, v := range s.values {
			wanted = append(wanted, v)
		}
		var lines []string
		for key, f := range s.b.Retrieve(s.t, wanted...) {
			lines = append(lines, fmt.Sprintf("%s mtu %d vrf %q addresses %v\n", key, f.Value.GetMtu(), f.Value.GetVrfMasterInterface(), f.Value.GetIpAddresses()))
		}
		slices.Sort(lines)
		s.out.WriteString(strings.Join(lines, ""))
	default:
		s.t.Fatalf("what is %q?", line)
	}
}

func (s *story) create(text string) error {
	v := testkit.Parse[*value](s.t, text)
	if err := s.h.validate("", v); err != nil {
		return err
	}
	s.values[v.Name] = v
	if _, err := s.h.create(s.t.Context(), keyOf(v.Name), v); err != nil {
		return err
	}
	s.b.Create(s.t, v) // once more, for the index
	return nil
}

func (s *story) derived(verb, key string, v *value) error {
	_, _, vrf := keys.ParseVRF(key)
	switch {
	case verb == "create" && vrf:
		return errors.Join(validateVRF(key, v), ignore(s.h.createVRF(s.t.Context(), key, v)))
	case verb == "create":
		return errors.Join(validateAddress(key, v), ignore(s.h.createAddress(s.t.Context(), key, v)))
	case vrf:
		return s.h.deleteVRF(s.t.Context(), key, v, struct{}{})
	}
	return s.h.deleteAddress(s.t.Context(), key, v, struct{}{})
}

func ignore(_ struct{}, err error) error { return err }

func (s *story) say(line string, err error) {
	if err != nil {
		fmt.Fprintf(&s.out, "%.20s...: %v\n", line, err)
	}
}
