package structured

import (
	"strconv"
	"testing"

	"go.yaml.in/yaml/v3"
	"google.golang.org/protobuf/proto"
	"pgregory.net/rapid"

	"github.com/keyplane/keyplane/internal/testkit/draw"
	"github.com/keyplane/keyplane/models"
	"github.com/keyplane/keyplane/proto/ligato/vpp/interfaces"
	"github.com/keyplane/keyplane/proto/ligato/vpp/l3"
)

// emit writes a whole document.
func emit(doc *yaml.Node) ([]byte, bool) {
	e := newEmitter(map[string]string{})
	e.block(doc, 0)
	return e.out.Bytes(), e.fits
}

// Whatever a document holds, it is written as yaml.Encoder writes it.
func TestEmitIsTheEncoder(t *testing.T) {
	text := rapid.OneOf(
		rapid.StringMatching(`[A-Za-z0-9_./-]{1,12}`), rapid.StringMatching(`[0-9a-f:.]{1,17}`), rapid.StringMatching(`[ -~]{0,12}`), rapid.String(),
		rapid.SampledFrom([]string{
			"", "true", "No", "Y", "null", "~", "on", "1.5", "0x1f", "0o7", "1_000", "2024-01-02", "12:30:45", "10.0.0.1/24", "2001:db8::1/64", "02:00:00:00:00:01",
			"a: b", "a #b", "- a", "---", "...", "_", "_1", ".inf", "1e3", "<<", "=", "a\tb", "a\nb", "\n", " a", "a ", "é", "\u2028", "0b1", "1/2", "1-2", "a/", "a-", "/a", "a.",
		}),
	)
	scalar := rapid.Custom(func(t *rapid.T) *yaml.Node {
		switch rapid.IntRange(0, 4).Draw(t, "kind") {
		case 0:
			return &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!int", Value: strconv.Itoa(rapid.Int().Draw(t, "int"))}
		case 1:
			return &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!bool", Value: strconv.FormatBool(rapid.Bool().Draw(t, "bool"))}
		case 2:
			return &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!float", Value: strconv.FormatFloat(rapid.Float64().Draw(t, "float"), 'g', -1, 64)}
		default:
			n := &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Style: yaml.DoubleQuotedStyle, Value: text.Draw(t, "text")}
			asTyped(n)
			return n
		}
	})
	var node func(depth int) *rapid.Generator[*yaml.Node]
	node = func(depth int) *rapid.Generator[*yaml.Node] {
		return rapid.Custom(func(t *rapid.T) *yaml.Node {
			kind := rapid.IntRange(0, 3).Draw(t, "node")
			if depth == 0 || kind > 1 {
				return scalar.Draw(t, "scalar")
			}
			below := rapid.SliceOfN(node(depth-1), 0, 4).Draw(t, "below")
			if kind == 0 {
				return &yaml.Node{Kind: yaml.SequenceNode, Content: below}
			}
			m := mapping()
			for _, one := range below {
				add(m, rapid.OneOf(rapid.StringMatching(`[a-z_]{1,9}`), text).Draw(t, "key"), one)
			}
			return m
		})
	}
	draw.Check(t, func(t *rapid.T) {
		doc := mapping()
		add(doc, "linuxConfig", node(4).Draw(t, "document"))
		want, err := encode(doc)
		if got, ok := emit(doc); err == nil && ok && string(got) != string(want) {
			t.Fatalf("it is\n%s\nwant\n%s", got, want)
		}
	})
}

// Values as they are common need no help from the encoder.
func TestEmitWritesCommonDocuments(t *testing.T) {
	for text, want := range map[string]bool{
		"linuxConfig: {interfaces: [{name: if1, mtu: 1400, enabled: true, phys_address: '02:00:00:00:00:01', ip_addresses: [10.0.0.1/24, 'fe80::1/64']}], routes: []}": true,
		"vppConfig: {a: \"two\\nlines\"}": false,
	} {
		var doc yaml.Node
		if err := yaml.Unmarshal([]byte(text), &doc); err != nil {
			t.Fatal(err)
		}
		plain(&doc)
		if got, ok := emit(doc.Content[0]); ok != want {
			t.Errorf("%s: %v\n%s", text, ok, got)
		}
	}
}

// plain removes the styles of a document.
func plain(n *yaml.Node) {
	n.Style = 0
	for _, one := range n.Content {
		plain(one)
	}
}

// Both ways of Format write the same documents.
func TestFormatQuickly(t *testing.T) {
	form := For(models.BuiltIn())
	of := func(message proto.Message) Item {
		m, _ := models.BuiltIn().ForMessage(message)
		text, err := models.JSON(message)
		if err != nil {
			t.Fatal(err)
		}
		return Item{Model: m, Value: text}
	}
	for _, items := range [][]Item{
		{of(&interfaces.Interface{Name: "a", Mtu: 1400, IpAddresses: []string{"10.0.0.1/24", "fe80::1/64"}}), of(&interfaces.Interface{Name: "true"}), of(&interfaces.Interface{})},
		{of(&l3.ProxyARP{}), of(&interfaces.Interface{Name: "two words", PhysAddress: "02:00:00:00:00:01"})},
		{of(&l3.ProxyARP{}), of(&l3.ProxyARP{Ranges: []*l3.ProxyARP_Range{{FirstIpAddr: "10.0.0.1"}, {}}})},
		{of(&interfaces.Interface{Name: "a\nb"}), of(&interfaces.Interface{Name: "c\td"})},
		{of(&l3.Route{DstNetwork: "10.0.0.0/8"}), of(&interfaces.Interface{Name: "b"}), of(&l3.Route{DstNetwork: "::/0"})},
	} {
		quick, ok, err := form.formatQuickly(items)
		slow, slowErr := form.formatSlowly(items)
		if err != nil || slowErr != nil || !ok || string(quick) != string(slow) {
			t.Errorf("%v (%v, %v): it is\n%s\nwant\n%s", ok, err, slowErr, quick, slow)
		}
	}
}
