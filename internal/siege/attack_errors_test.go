package siege

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"strings"
	"time"
)

// longErrors makes values whose errors have texts of megabytes, and files with very many errors.
func longErrors(ctx context.Context, t *target) error {
	huge := strings.Repeat("E", 2<<20)
	var fields strings.Builder
	for i := range 50_000 {
		fmt.Fprintf(&fields, `,"unknown%d":%d`, i, i)
	}
	shapes := []item{
		{linux("huge"), `{"name":"huge","type":` + quoted(huge) + `}`},
		dummy("huge", `,"ip_addresses":[`+quoted(huge)+`]`),
		dummy("huge", `,"`+huge+`":1`),
		{linux("huge"), huge},
		dummy("huge", `,"phys_address":`+quoted(huge)),
		dummy("fields", fields.String()),
		{plane("huge"), `{"name":"huge","type":"TAP","tap":{"host_if_name":` + quoted(huge) + `}}`},
		{"config/linux/l3/v2/route/10.9.0.0/16/x", `{"outgoing_interface":"x","dst_network":` + quoted(huge) + `}`},
	}
	return t.every(ctx, time.Second, func(n int) error {
		it := shapes[n%len(shapes)]
		if n%4 == 3 {
			return t.everywhere(ctx, "errors", it)
		}
		return t.write(ctx, it)
	})
}

// edits changes values, good and bad ones, many times a second.
func edits(ctx context.Context, t *target) error {
	files := func() error {
		return t.every(ctx, 50*time.Millisecond, func(n int) error {
			values := map[string]json.RawMessage{}
			for i := range 20 {
				it := veth(fmt.Sprintf("edit%d", i), fmt.Sprintf("edit%d", i^1), fmt.Sprintf(`,"mtu":%d`, 1000+(n*i)%9000))
				values[it.key] = json.RawMessage(it.value)
			}
			text := documentOf(values)
			return t.save("edits.json", text[:len(text)-n%3]) // a third is cut off
		})
	}
	keys := func() error {
		return t.every(ctx, 20*time.Millisecond, func(n int) error {
			var items []item
			for i := range 10 {
				items = append(items, veth(fmt.Sprintf("flood%d", i), fmt.Sprintf("flood%d", i^1), fmt.Sprintf(`,"mtu":%d`, 68+n%10_000)))
			}
			return t.write(ctx, items...)
		})
	}
	removals := func() error {
		return t.every(ctx, 300*time.Millisecond, func(n int) error {
			key := rootOf(t.label) + linux(fmt.Sprintf("flood%d", n%10))
			return unlessOver(ctx, t.store.Del(ctx, key).Err())
		})
	}
	return together(files, keys, removals)
}

// spellings has several files declare the same thousands of keys, and spell a field twice.
func spellings(ctx context.Context, t *target) error {
	values := map[string]json.RawMessage{}
	for i := range 5000 {
		it := dummy(fmt.Sprintf("s%d", i), `,"hostIfName":"s","host_if_name":"t"`)
		values[it.key] = json.RawMessage(it.value)
	}
	return t.every(ctx, 3*time.Second, func(n int) error {
		mine := maps.Clone(values)
		mine[linux("/s")] = json.RawMessage(`{"name":"s"}`)
		return t.save(fmt.Sprintf("spellings%d.json", n%3), documentOf(mine))
	})
}
