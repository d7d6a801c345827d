package wire

import (
	"bytes"
	"encoding/json"
	"strconv"

	"github.com/go-json-experiment/json/jsontext"
)

// AppendIndent appends the entry as json.MarshalIndent writes it, with two spaces. A dump
// may have a hundred thousand entries, and encoding/json would go through the text of each
// value three times. An error means that a text is not valid UTF-8 or JSON.
func (e DumpEntry) AppendIndent(dst []byte, prefix string) ([]byte, error) {
	out := bytes.NewBuffer(dst)
	in := prefix + "  "
	out.WriteString("{\n" + in + `"Key": `)
	if err := quote(out, e.Key); err != nil {
		return dst, err
	}
	out.WriteString(",\n" + in + `"Value": `)
	if err := e.Value.indent(out, in); err != nil {
		return dst, err
	}
	out.WriteString(",\n" + in + `"Origin": `)
	out.Write(strconv.AppendInt(out.AvailableBuffer(), int64(e.Origin), 10))
	out.WriteString(",\n" + in + `"Metadata": `)
	if err := indentRaw(out, e.Metadata, in); err != nil {
		return dst, err
	}
	out.WriteString("\n" + prefix + "}")
	return out.Bytes(), nil
}

// indent writes a message, or null.
func (m *Message) indent(out *bytes.Buffer, prefix string) error {
	if m == nil {
		out.WriteString("null")
		return nil
	}
	out.WriteString("{\n" + prefix + `  "ProtoMsgName": `)
	if err := quote(out, m.ProtoMsgName); err != nil {
		return err
	}
	out.WriteString(",\n" + prefix + `  "ProtoMsgData": `)
	if err := indentRaw(out, m.ProtoMsgData, prefix+"  "); err != nil {
		return err
	}
	out.WriteString("\n" + prefix + "}")
	return nil
}

// indentRaw writes JSON, or null if there is none.
func indentRaw(out *bytes.Buffer, raw json.RawMessage, prefix string) error {
	if raw == nil {
		out.WriteString("null")
		return nil
	}
	return json.Indent(out, raw, prefix, "  ")
}

// quote writes a text as JSON.
func quote(out *bytes.Buffer, text string) error {
	quoted, err := jsontext.AppendQuote(out.AvailableBuffer(), text)
	out.Write(quoted)
	return err
}
