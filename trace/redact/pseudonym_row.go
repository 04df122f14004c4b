package redact

import (
	"bytes"
	"encoding/json"
	"reflect"
)

// A column is a text field of a row.
type column struct {
	index []int
	kind  string // key of rules
}

// columns are the text fields of types of rows.
type columns map[reflect.Type][]column

// columnsOf returns the text fields of a type of rows.
func (c columns) columnsOf(row reflect.Type) []column {
	if all, ok := c[row]; ok {
		return all
	}
	all := []column{}
	for _, f := range reflect.VisibleFields(row) {
		if f.Type.Kind() == reflect.String {
			all = append(all, column{f.Index, f.Tag.Get("redact")})
		}
	}
	c[row] = all
	return all
}

// Row replaces the texts of a row by pseudonyms, according to the tags of its fields. row is a pointer.
func (m *Maker) Row(row any) {
	v := reflect.ValueOf(row).Elem()
	for _, c := range m.columns.columnsOf(v.Type()) {
		field := v.FieldByIndex(c.index)
		if text := field.String(); text != "" && c.kind != "own" {
			field.SetString(m.cached(c.kind, text, rules[c.kind]))
		}
	}
}

// json replaces the texts in a JSON document by pseudonyms, according to the names of members.
func (m *Maker) json(text string) string {
	d := json.NewDecoder(bytes.NewReader([]byte(text)))
	d.UseNumber()
	var v any
	if err := d.Decode(&v); err != nil {
		return "" // does not happen: we wrote it
	}
	out, err := json.Marshal(m.value("", v))
	if err != nil {
		return ""
	}
	return string(out)
}

// value makes the pseudonym of a member's value.
func (m *Maker) value(member string, v any) any {
	switch v := v.(type) {
	case string:
		switch member {
		case "Host":
			return m.all.Host(v)
		case "UUID":
			return m.all.GPU(v)
		}
		return m.all.Scrub(v)
	case []any:
		for i := range v {
			v[i] = m.value(member, v[i])
		}
	case map[string]any:
		return m.object(member, v)
	}
	return v
}

// object replaces the texts of an object. An object with just a key and a value is an attribute; Parts
// holds labels by part of a file.
func (m *Maker) object(member string, v map[string]any) any {
	key, isKey := v["Key"].(string)
	if value, ok := v["Value"].(string); ok && isKey && len(v) == 2 {
		return map[string]any{"Key": m.Key(key), "Value": m.all.Attribute(key, value)}
	}
	made := map[string]any{}
	for name, x := range v {
		if label, ok := x.(string); ok && member == "Parts" {
			made[m.all.Scrub(name)] = m.Label(label)
			continue
		}
		made[name] = m.value(name, x)
	}
	return made
}

// Struct returns a JSON-compatible value with its texts replaced by pseudonyms, according to the names of
// its fields.
func Struct[T any](m *Maker, v *T) (*T, error) {
	text, err := json.Marshal(v)
	if err != nil {
		return nil, err
	}
	made := new(T)
	return made, json.Unmarshal([]byte(m.json(string(text))), made)
}
