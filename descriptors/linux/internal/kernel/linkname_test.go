package kernel_test

import (
	"testing"

	"github.com/keyplane/keyplane/descriptors/linux/internal/kernel"
	"github.com/keyplane/keyplane/internal/testkit"
	"github.com/keyplane/keyplane/models/limits"
)

// FuzzLinkName compares limits.WrongLinkName with the kernel: a name is valid if the kernel makes a link that has
// exactly this name, and has settings for it.
func FuzzLinkName(f *testing.F) {
	for _, name := range []string{
		"eth0", "a.b", "x%d", "%", "%%", "x%s", "all", "default", ".", "..", "...", "a b", "a\tb", "a\vb", "a\x00b", "a/b", "a:b", "à", "é", "\xa0", "ß",
		"-", "+", "eth0@if1", "*", "\x01", "\x7f", "123456789012345", "1234567890123456", "all0", "Default", "'", "a\nb", "!",
	} {
		f.Add(name)
	}
	red := open(f, testkit.Netns(f, "red")+"/red")
	f.Fuzz(func(t *testing.T, name string) {
		if name == "" || name == "lo" || name == "peer" {
			return
		}
		err := red.AddVETH(kernel.Link{Name: name}, "peer", red)
		link, missing := red.LinkByName("peer")
		usable := err == nil
		if missing == nil {
			all, err := red.Links()
			try(t, err)
			named := false
			for _, l := range all {
				named = named || l.Name == name
			}
			usable = usable && named && red.Sysctl("ipv6/conf/"+name+"/accept_ra", "0") == nil
			try(t, red.DelLink(link.Index))
		}
		if want := limits.WrongLinkName(name); usable != (want == "") {
			t.Errorf("%q is usable: %v (%v); expected %q", name, usable, err, want)
		}
	})
}
