package siege

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/keyplane/keyplane/internal/owner"
	"github.com/keyplane/keyplane/models"
)

// addresses declares interfaces with as many addresses as a value may have, of which most are bad, and
// some with more.
func addresses(ctx context.Context, t *target) error {
	lists := []func(i int) string{
		func(int) string { return "10.200.0.1/24" },
		func(i int) string { return fmt.Sprintf("10.200.0.%d/24", i) },
		func(i int) string { return fmt.Sprintf("fe80::%x%%eth%d/129", i, i) },
		func(int) string { return "" },
		func(i int) string { return fmt.Sprintf("alloc:none%d/none", i) },
	}
	return t.every(ctx, 4*time.Second, func(n int) error {
		count := models.MaxEntries
		if n%4 == 3 {
			count = 100_000
		}
		list := fmt.Sprintf(`,"ip_addresses":%s`, listOf(count, lists[n%len(lists)]))
		return t.everywhere(ctx, "addresses", dummy("many", list), loop("vmany", list))
	})
}

// controls puts control characters and marks of direction wherever a value has text.
func controls(ctx context.Context, t *target) error {
	texts := []string{"\x1b[2J\x1b]0;owned\x07", "a\nlevel=INFO msg=forged", "\x00", "\r", "\u202egnp.exe", "\x7f\x80\xfe", "\u2028", "tab\there", "%s%n%d", "\ufeff"}
	return t.every(ctx, 500*time.Millisecond, func(n int) error {
		text := texts[n%len(texts)]
		return t.everywhere(ctx, "controls",
			dummy("c"+text, ""), dummy("chost", `,"host_if_name":`+quoted(text)), dummy("calias", `,"phys_address":`+quoted(text)),
			loop("v"+text, ""), loop("vmac", `,"phys_address":`+quoted(text)),
			item{plane("memif"), fmt.Sprintf(`{"name":"memif","type":"MEMIF","memif":{"socket_filename":%s,"secret":%s}}`, quoted(text), quoted(text))},
			item{plane("vtap"), fmt.Sprintf(`{"name":"vtap","type":"TAP","tap":{"version":2,"host_if_name":%s}}`, quoted(text))},
			item{linux("cveth"), fmt.Sprintf(`{"name":"cveth","type":"VETH","veth":{"peer_if_name":%s}}`, quoted(text))},
		)
	})
}

// names declares names that are longer than a file name or a store's key may be. Their status
// is published under such names, too.
func names(ctx context.Context, t *target) error {
	return t.every(ctx, time.Second, func(n int) error {
		long := strings.Repeat("n", []int{255, 256, 300, 4096, 60_000}[n%5])
		deep := strings.Repeat("d/", []int{100, 2000, 20_000}[n%3]) + "e"
		return t.everywhere(ctx, "names", dummy(long, `,"host_if_name":"long0"`), loop(long, ""), dummy(deep, ""), loop(deep, ""),
			item{"config/linux/l3/v2/route/10.9.0.0/16/" + long, fmt.Sprintf(`{"outgoing_interface":%q,"dst_network":"10.9.0.0/16"}`, long)})
	})
}

// escapes puts what some reader may take for a path, a template or a variable into keys and values.
func escapes(ctx context.Context, t *target) error {
	texts := []string{"..", "../../../etc/passwd", "%2e%2e%2f", "%", "%zz", "a//b", "/", "./", "${HOME}", "$(id)", "{{.}}", `\u0000`, `\ud800`, `"`, `'`, "`id`", "~", "*", "[x-", "con.json", "a b", "-rf"}
	return t.every(ctx, 500*time.Millisecond, func(n int) error {
		text := texts[n%len(texts)]
		raw := `{"name":"raw","type":"DUMMY","host_if_name":"\ud800\u0000\/\\"}`
		return t.everywhere(ctx, "escapes",
			dummy(text, ""), loop(text, ""), dummy("e"+text, `,"host_if_name":`+quoted(text)), item{linux("raw"), raw},
			item{"config/" + text, `{}`}, item{text, text}, item{"config/../owner", "x"}, item{"config/linux/l3/v2/route/" + text + "/" + text, `{}`})
	})
}

// claimsOfLabel writes the key of the label's owner for agents that live: without an end, with a far one, and with one
// so near that the other attacks by this store go on between.
func claimsOfLabel(ctx context.Context, t *target) error {
	return t.every(ctx, 3*time.Second, func(n int) error {
		other := owner.Self(t.label, owner.NewID())
		if n%2 == 0 {
			other.Boot = "another machine"
		}
		other.Expires = []int{0, -1, 1 << 62, 10}[n%4]
		text, err := json.Marshal(other)
		if err != nil {
			return err
		}
		ends := []time.Duration{0, 100 * time.Hour, time.Second}[n%3]
		return unlessOver(ctx, t.store.Set(ctx, owner.Key(rootOf(t.label)), text, ends).Err())
	})
}

// hoard writes far more keys than max-keys allows, of values that wait for an interface, and removes half of them in turn.
func hoard(ctx context.Context, t *target) error {
	const most = 5 * mostKeys / 2
	root := rootOf(t.label)
	return t.every(ctx, 4*time.Second, func(n int) error {
		pipe := t.store.Pipeline()
		for i := range most {
			key := fmt.Sprintf("config/linux/l3/v2/route/10.%d.%d.0/24/none", i/256, i%256)
			if n%2 == 1 && i%2 == 0 {
				pipe.Del(ctx, root+key)
				continue
			}
			pipe.Set(ctx, root+key, fmt.Sprintf(`{"outgoing_interface":"none","dst_network":"10.%d.%d.0/24","metric":%d}`, i/256, i%256, n), 0)
		}
		_, err := pipe.Exec(ctx)
		return unlessOver(ctx, err)
	})
}
