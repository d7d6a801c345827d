package inspect

import (
	"fmt"
	"io"
	"strings"

	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/keyplane/keyplane/cmd/agentctl/internal/session"
	"github.com/keyplane/keyplane/cmd/agentctl/internal/show"
	"github.com/keyplane/keyplane/models"
	facts "github.com/keyplane/keyplane/models/describe"
	"github.com/keyplane/keyplane/northbound/rest/wire"
)

// A describedModel is a model of the agent with its fields. Models of counters that agentctl was
// built without have none.
type describedModel struct {
	modelRow
	Comment string        `json:",omitempty"`
	Fields  []facts.Field `json:",omitempty"`
}

// messageTypes has the messages of models that agentctl was built without.
type messageTypes interface {
	MessageType(name string) (protoreflect.MessageType, error)
}

// describeModels adds the fields of models.
func describeModels(types messageTypes, all []wire.Model) ([]describedModel, error) {
	out := make([]describedModel, len(all))
	for i, m := range all {
		out[i].modelRow = rowOf(m)
		one, ok := models.BuiltIn().ByName(m.Name)
		if !ok && m.Class != session.ConfigClass {
			continue
		}
		if !ok {
			kind, err := types.MessageType(m.ProtoName)
			if err != nil {
				return nil, fmt.Errorf("model %s of the agent: %w", m.Name, err)
			}
			one = session.ModelOf(m, kind)
		}
		fields, err := facts.Fields(one)
		if err != nil {
			return nil, err
		}
		out[i].Comment, out[i].Fields = facts.Message(one), fields
	}
	return out, nil
}

// Widths of the columns of fields on 80 columns, without the spaces between them. The last three share
// what a terminal has beyond that.
const (
	tableWidth   = 80
	nameWidth    = 26
	typeWidth    = 9
	allowedWidth = 19
	defaultWidth = 7
	exampleWidth = 15
)

// fieldTables prints each model, with one row for each field. Fields of a message are indented
// below it. Long cells continue in the next line. Without an agent, nobody knows which models one
// implements.
func fieldTables(out io.Writer, all []describedModel, offline bool) error {
	var b strings.Builder
	columns, _ := show.Size(out)
	spare := max(0, columns-tableWidth)
	for i, m := range all {
		if i > 0 {
			b.WriteString("\n")
		}
		implemented := map[bool]string{true: "yes", false: "no"}[m.Implemented]
		if offline {
			implemented = ""
		}
		for _, row := range [][2]string{
			{"model", m.Name}, {"keys", m.KeyPrefix + m.NameTemplate}, {"message", m.ProtoName}, {"in files", m.ConfigField},
			{"implemented", implemented}, {"", m.Comment},
		} {
			if row[1] != "" {
				writeRow(&b, []int{12, 67 + spare}, []string{row[0], show.Line(row[1])})
			}
		}
		if len(m.Fields) > 0 {
			b.WriteString("\n")
			writeFields(&b, m.Fields, spare)
		}
	}
	_, err := io.WriteString(out, b.String())
	return err
}

// writeFields prints the table of fields, that much wider than usual. A star marks required fields.
func writeFields(b *strings.Builder, fields []facts.Field, spare int) {
	rows := [][]string{{"FIELD (*: required)", "TYPE", "ALLOWED", "DEFAULT", "EXAMPLE"}}
	for _, f := range fields {
		name := strings.Repeat("  ", strings.Count(f.Name, ".")) + f.Name[strings.LastIndexByte(f.Name, '.')+1:]
		if f.Required {
			name += "*"
		}
		allowed := strings.ReplaceAll(f.Allowed, "|", " | ")
		if f.Unit != "" {
			allowed = strings.TrimSpace(allowed + " " + f.Unit)
		}
		if f.Deprecated {
			allowed = strings.TrimSpace("(deprecated) " + allowed)
		}
		rows = append(rows, []string{name, f.Type, allowed, f.Default, show.Line(f.Example)})
	}
	widths := fieldWidths(rows, spare)
	for _, row := range rows {
		writeRow(b, widths, row)
	}
}

// fieldWidths returns the widths of the columns. Names and types are whole. The three columns with texts
// share the rest of the line: first each gets its longest word, then defaults and examples get what they
// need, and what is left is for what is allowed. Only on a line that has no room for the longest words,
// words are broken.
func fieldWidths(rows [][]string, spare int) []int {
	whole, word := make([]int, 5), make([]int, 5)
	for _, row := range rows {
		for i, cell := range row {
			whole[i] = max(whole[i], len(cell))
			for w := range strings.FieldsSeq(cell) {
				word[i] = max(word[i], len(w))
			}
		}
	}
	widths := []int{whole[0], typeWidth, word[2], word[3], word[4]}
	left := tableWidth + spare - (len(widths) - 1) - widths[0] - widths[1] - widths[2] - widths[3] - widths[4]
	if left < 0 {
		return narrowWidths(whole, spare)
	}
	for _, i := range []int{3, 4, 2} {
		more := min(left, whole[i]-widths[i])
		widths[i], left = widths[i]+more, left-more
	}
	return widths
}

// narrowWidths returns widths of columns in which long words are broken, but no names of fields. What short
// names leave goes to long defaults, and then to what is allowed, which also pays for long names.
func narrowWidths(whole []int, spare int) []int {
	widths := []int{nameWidth, typeWidth, allowedWidth + spare/2, defaultWidth + spare/6, exampleWidth + spare - spare/2 - spare/6}
	left := nameWidth - whole[0]
	longer := min(max(0, left), max(0, whole[3]-widths[3]))
	widths[0], widths[2], widths[3] = widths[0]-left, widths[2]+left-longer, widths[3]+longer
	return widths
}

// writeRow prints cells below each other as far as they are longer than their columns.
func writeRow(b *strings.Builder, widths []int, cells []string) {
	lines := make([][]string, len(cells))
	rows := 1
	for i, cell := range cells {
		lines[i] = wrap(cell, widths[i])
		rows = max(rows, len(lines[i]))
	}
	for r := range rows {
		var line strings.Builder
		for i := range cells {
			text := ""
			if r < len(lines[i]) {
				text = lines[i][r]
			}
			fmt.Fprintf(&line, "%-*s ", widths[i], text)
		}
		b.WriteString(strings.TrimRight(line.String(), " ") + "\n")
	}
}

// wrap breaks a text at spaces. Words that are wider than the column are broken, after a sign if they have one.
func wrap(text string, width int) (out []string) {
	indent := text[:len(text)-len(strings.TrimLeft(text, " "))]
	line := indent
	for word := range strings.FieldsSeq(text) {
		switch {
		case line == indent:
			line += word
		case len(line)+1+len(word) <= width:
			line += " " + word
		default:
			out = append(out, line)
			line = word
		}
		for len(line) > width {
			end := width
			if at := strings.LastIndexAny(line[:width], "_/:"); at > len(indent) {
				end = at + 1
			}
			out, line = append(out, line[:end]), line[end:]
		}
	}
	return append(out, line)
}
