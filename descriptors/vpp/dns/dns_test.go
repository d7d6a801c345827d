package dns

import (
	"log/slog"
	"slices"
	"testing"

	"github.com/keyplane/keyplane/descriptors/vpp/internal/simulated"
	"github.com/keyplane/keyplane/internal/testkit"
	"github.com/keyplane/keyplane/internal/vppsim"
	"github.com/keyplane/keyplane/models"
	"github.com/keyplane/keyplane/proto/ligato/vpp/dns"
	"github.com/keyplane/keyplane/scheduler"
)

func cache(servers ...string) *dns.DNSCache { return &dns.DNSCache{UpstreamDnsServers: servers} }

// standing returns the cache that Retrieve reports; nil: none.
func standing(t *testing.T, h handler, declared ...*dns.DNSCache) *dns.DNSCache {
	t.Helper()
	var wanted []scheduler.Desired[*dns.DNSCache]
	for _, v := range declared {
		wanted = append(wanted, scheduler.Desired[*dns.DNSCache]{Value: v})
	}
	var out *dns.DNSCache
	for f, err := range h.retrieve(t.Context(), wanted) {
		if err != nil {
			t.Fatal(err)
		}
		if f.OwnerUnknown != (len(declared) == 0) {
			t.Errorf("the owner is unknown: %t, with %d declared", f.OwnerUnknown, len(declared))
		}
		out = f.Value
	}
	return out
}

// TestLife has each version follow the one before, and the last one go. Each verb is called twice,
// as after an answer that was lost, and each time by an agent that has just been started.
func TestLife(t *testing.T) {
	for _, release := range simulated.Releases() {
		t.Run(release, func(t *testing.T) {
			vpp, notes := simulated.Start(t, release), testkit.Memory{}
			c := vpp.Dial()
			start := func() handler { return newHandler(Options{API: c, Memory: notes}) }
			if v := standing(t, start()); v != nil {
				t.Errorf("a new VPP has %v", v)
			}
			steps := []struct {
				value *dns.DNSCache
				shows string
			}{
				{cache("10.0.0.53"), "enabled true\nserver 10.0.0.53\n"},
				{cache("10.0.0.54", "fd00::53", "10.0.0.54"), "enabled true\nserver 10.0.0.54\nserver fd00::53\n"},
				{cache("10.0.0.55", "FD00:0::53"), "enabled true\nserver 10.0.0.55\nserver fd00::53\n"},
			}
			for _, step := range steps {
				for range 2 {
					h := start()
					if err := h.apply(t.Context(), serversOf(step.value)); err != nil {
						t.Fatal(err)
					}
				}
				if got := vpp.Show("show dns"); vpp.Sim != nil && got != step.shows {
					t.Errorf("%v: VPP has\n%s", step.value, got)
				}
				d := start().descriptor()
				if found := standing(t, start(), step.value); found == nil || !d.Equivalent("", found, step.value) {
					t.Errorf("found %v; expected %v", found, step.value)
				}
				if found := standing(t, start()); found == nil {
					t.Error("nobody declares it, and it is not found")
				}
			}
			for range 2 {
				if err := start().delete(t.Context(), "", steps[2].value, struct{}{}); err != nil {
					t.Fatal(err)
				}
			}
			if got := vpp.Show("show dns"); vpp.Sim != nil && got != "enabled false\n" {
				t.Errorf("left behind:\n%s", got)
			}
			if v := standing(t, start()); v != nil || len(notes) > 0 {
				t.Errorf("left behind: %v, and the record %v", v, notes)
			}
		})
	}
}

// TestEnabledByOthers declares a cache that somebody else has enabled with another server: the
// declared one is added.
func TestEnabledByOthers(t *testing.T) {
	vpp := simulated.Start(t, simulated.Newest())
	c := vpp.Dial()
	other := newHandler(Options{API: c})
	if err := other.apply(t.Context(), serversOf(cache("10.0.0.99"))); err != nil {
		t.Fatal(err)
	}
	h, v := newHandler(Options{API: c}), cache("10.0.0.53")
	if found := standing(t, h, v); found == nil || h.descriptor().Equivalent("", found, v) {
		t.Errorf("found %v; expected a cache without the declared server", found)
	}
}

// TestLostAnswer has an agent die between a request and its record. The next one removes the
// server all the same.
func TestLostAnswer(t *testing.T) {
	vpp, notes := simulated.Start(t, simulated.Newest()), testkit.Memory{}
	c := vpp.Dial()
	h := newHandler(Options{API: c, Memory: notes})
	if err := h.apply(t.Context(), serversOf(cache("10.0.0.53"))); err != nil {
		t.Fatal(err)
	}
	h.record.set(append(slices.Clone(h.record.servers()), serversOf(cache("10.0.0.54"))...))
	if err := h.setServer(t.Context(), serversOf(cache("10.0.0.54"))[0], true); err != nil {
		t.Fatal(err)
	}
	again := newHandler(Options{API: c, Memory: notes})
	if err := again.apply(t.Context(), serversOf(cache("10.0.0.55"))); err != nil {
		t.Fatal(err)
	}
	if got := vpp.Show("show dns"); vpp.Sim != nil && got != "enabled true\nserver 10.0.0.55\n" {
		t.Errorf("VPP has\n%s", got)
	}
}

// TestUnreadableRecord has a memory with a record of other programs, and a broken server.
func TestUnreadableRecord(t *testing.T) {
	notes := testkit.Memory{"other": []byte("10.0.0.1"), recordKey: []byte("10.0.0.53 broken fd00::53 ")}
	if got, want := newRecord(notes, slog.New(slog.DiscardHandler)).servers(), serversOf(cache("10.0.0.53", "fd00::53")); !slices.Equal(got, want) {
		t.Errorf("the servers on record are %v; expected %v", got, want)
	}
}

// TestWithoutPlugin has a VPP without the plugin: there is no cache, and none can be made.
func TestWithoutPlugin(t *testing.T) {
	vpp := simulated.StartWith(t, vppsim.Options{Without: []string{"dns"}})
	h := newHandler(Options{API: vpp.Dial()})
	if v := standing(t, h); v != nil {
		t.Errorf("there is %v", v)
	}
	if err := h.apply(t.Context(), serversOf(cache("10.0.0.53"))); err == nil {
		t.Error("it was done")
	}
}

// TestUnreadable reads from a VPP that has gone: that is an error, not a VPP without a cache.
func TestUnreadable(t *testing.T) {
	vpp := simulated.Start(t, simulated.Newest())
	c := vpp.Dial()
	vpp.Kill()
	for _, err := range newHandler(Options{API: c}).retrieve(t.Context(), nil) {
		if err != nil {
			return
		}
	}
	t.Error("Retrieve yields no error")
}

func TestMeaning(t *testing.T) {
	for _, c := range []struct {
		name   string
		value  *dns.DNSCache
		fields []string
	}{
		{"nothing", cache(), []string{"upstream_dns_servers"}},
		{"no addresses", cache("x", "10.0.0.53", "", "fe80::1%if1", "0.0.0.0"),
			[]string{"upstream_dns_servers[0]", "upstream_dns_servers[2]", "upstream_dns_servers[3]", "upstream_dns_servers[4]"}},
		{"IPv6 alone", cache("fd00::53"), []string{"upstream_dns_servers"}},
		{"both", cache("fd00::53", "10.0.0.53"), nil},
	} {
		if got := models.Fields(validate("", c.value)); !slices.Equal(got, c.fields) {
			t.Errorf("%s: the bad fields are %q; expected %q", c.name, got, c.fields)
		}
	}
	v := cache("10.0.0.53/24", "fd00::53")
	normal, warnings := normalize("", v)
	if !slices.Equal(normal.GetUpstreamDnsServers(), []string{"10.0.0.53", "fd00::53"}) || len(warnings) != 1 || v.GetUpstreamDnsServers()[0] != "10.0.0.53/24" {
		t.Errorf("%v, %q from %v", normal, warnings, v)
	}
	if again, warnings := normalize("", normal); again != normal || len(warnings) > 0 {
		t.Errorf("normalizing twice gives %v, %q", again, warnings)
	}
}
