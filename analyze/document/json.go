package document

import (
	"bufio"
	"io"

	"github.com/sgtrace/sgtrace/analyze/table"
	"github.com/sgtrace/sgtrace/request"
)

// The objects of a document. Fields are only ever added; docs/METRICS.md defines them.
type (
	inputJSON struct {
		Name  table.JSONText `json:"name"`
		Bytes *int64         `json:"size_bytes"`
	}
	warningJSON struct {
		Severity table.JSONText `json:"severity"`
		Text     table.JSONText `json:"text"`
	}
)

func (i Input) object() inputJSON {
	v := inputJSON{Name: table.JSONText(i.Name)}
	if i.Bytes != request.Unknown {
		v.Bytes = &i.Bytes
	}
	return v
}

func (x Warning) object() warningJSON {
	return warningJSON{table.JSONText(x.Severity.String()), table.JSONText(x.Text)}
}

// writeJSON writes one object, every element of its arrays on a line of its own.
func (d *Document) writeJSON(w io.Writer) error {
	out := bufio.NewWriter(w)
	head := struct {
		Schema table.JSONText `json:"schema"`
		Main   table.JSONText `json:"main"`
	}{table.JSONText(d.Schema), table.JSONText(d.Main)}
	text, err := table.Codec.MarshalToString(head)
	if err != nil {
		return err
	}
	out.WriteString(text[:len(text)-1]) // the object goes on
	arrays := []struct {
		name  string
		n     int
		write func(i int) error
	}{
		{"inputs", len(d.Inputs), func(i int) error { return writeObject(out, d.Inputs[i].object()) }},
		{"warnings", len(d.Warnings), func(i int) error { return writeObject(out, d.Warnings[i].object()) }},
		{"tables", len(d.Tables), func(i int) error { return d.Tables[i].WriteJSON(out) }},
		{"findings", len(d.Findings), func(i int) error { return writeObject(out, d.Findings[i].Object(d.Again)) }},
	}
	for _, a := range arrays {
		out.WriteString(",\n\"" + a.name + "\":[")
		for i := range a.n {
			if i > 0 {
				out.WriteByte(',')
			} else {
				out.WriteByte('\n')
			}
			if err := a.write(i); err != nil {
				return err
			}
		}
		out.WriteByte(']')
	}
	out.WriteString("}\n")
	return out.Flush()
}

func writeObject(out *bufio.Writer, v any) error {
	text, err := table.Codec.MarshalToString(v)
	if err != nil {
		return err
	}
	out.WriteString(text)
	return out.WriteByte('\n')
}
