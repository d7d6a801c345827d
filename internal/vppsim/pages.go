package vppsim

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// pages are what Normalized shows.
var pages = []string{
	"show interface", "show dhcp client", "show ip6 nd", "show ip table", "show ip fib", "show bridge-domain", "show l2fib",
	"show dhcp proxy", "show ip neighbors", "show vrrp vr", "show interface span", "show ip neighbor-config", "show arp proxy", "show l3xc", "show teib",
}

// Normalized returns the pages of interfaces, of layer 2 and of layer 3, and further ones, without
// what depends on the order in which things came: interfaces are called by their tags, indexes and
// numbers are left out. So two VPPs with the same configuration show the same. show returns a page.
func Normalized(show func(page string) string, more ...string) string {
	tags := map[string]string{}
	for line := range strings.Lines(show("show interface")) {
		if words := strings.Fields(line); words[3] == "up" || words[3] == "down" {
			tags[words[1]] = words[2]
		}
	}
	var out strings.Builder
	for _, page := range slices.Concat(pages, more) {
		lines := strings.Split(show(page), "\n")
		for i, line := range lines {
			words := strings.Fields(line)
			for n, word := range words {
				words[n] = cmp.Or(tags[word], word)
			}
			if len(words) > 1 && strings.Trim(words[0], "0123456789") == "" && page != "show ip table" {
				words = words[1:]
			}
			if page == "show interface" {
				slices.Sort(words) // addresses are shown as they came
			}
			lines[i] = strings.Join(words, " ")
		}
		slices.Sort(lines)
		fmt.Fprintf(&out, "%s%s\n\n", page, strings.Join(lines, "\n"))
	}
	return out.String()
}
