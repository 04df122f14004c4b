package redact

import (
	"bytes"
	"encoding/json"
	"reflect"
)

// A column is a field of a row that is a text.
type column struct {
	index []int
	kind  string // key of rules
}

// columns are those of types of rows.
type columns map[reflect.Type][]column

// columnsOf returns the texts of a type of rows.
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

// Row gives the texts of a row pseudonyms, by the tags of its fields. row is a pointer.
func (m *Maker) Row(row any) {
	v := reflect.ValueOf(row).Elem()
	for _, c := range m.columns.columnsOf(v.Type()) {
		field := v.FieldByIndex(c.index)
		if text := field.String(); text != "" && c.kind != "own" {
			field.SetString(m.cached(c.kind, text, rules[c.kind]))
		}
	}
}

// json gives the texts of a JSON document pseudonyms, by the names of members.
func (m *Maker) json(text string) string {
	d := json.NewDecoder(bytes.NewReader([]byte(text)))
	d.UseNumber()
	var v any
	if err := d.Decode(&v); err != nil {
		return "" // it was written by us
	}
	out, err := json.Marshal(m.value("", v))
	if err != nil {
		return ""
	}
	return string(out)
}

// value makes that of a member.
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

// object makes an object: what has a name and a value beside is an attribute, the labels of the
// parts of a file are by the parts.
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

// Struct returns a value that JSON can hold with pseudonyms for its texts, by the names of its
// fields.
func Struct[T any](m *Maker, v *T) (*T, error) {
	text, err := json.Marshal(v)
	if err != nil {
		return nil, err
	}
	made := new(T)
	return made, json.Unmarshal([]byte(m.json(string(text))), made)
}
