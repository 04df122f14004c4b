package otlplogs

import (
	"bytes"
	"encoding/json"
	"strconv"
)

// An attribute belongs to a resource or a record.
type attribute struct {
	Key   string
	Value value
}

// A value has any type, in OTLP's JSON form.
type value struct {
	Text  *string                       `json:"stringValue"`
	Bool  *bool                         `json:"boolValue"`
	Whole json.RawMessage               `json:"intValue"`
	Float json.RawMessage               `json:"doubleValue"`
	List  *struct{ Values []value }     `json:"arrayValue"`
	Dict  *struct{ Values []attribute } `json:"kvlistValue"`
}

// attributes returns the attributes that are texts or numbers.
func attributes(list []attribute) map[string]string {
	of := make(map[string]string, len(list))
	for i := range list {
		if v := &list[i].Value; v.List == nil && v.Dict == nil {
			of[list[i].Key] = v.text()
		}
	}
	return of
}

// text returns a value as text; objects and lists as JSON.
func (v *value) text() string {
	switch {
	case v.Text != nil:
		return *v.Text
	case v.Bool != nil:
		return strconv.FormatBool(*v.Bool)
	case v.Whole != nil:
		return string(bytes.Trim(v.Whole, `"`))
	case v.Float != nil:
		return string(v.Float)
	case v.List != nil || v.Dict != nil:
		b, _ := json.Marshal(v.plain()) // texts, booleans, and lists of them always marshal
		return string(b)
	}
	return ""
}

// plain returns a value as ordinary JSON would have it.
func (v *value) plain() any {
	switch {
	case v.Dict != nil:
		return dict(v.Dict.Values)
	case v.List != nil:
		list := make([]any, len(v.List.Values))
		for i := range v.List.Values {
			list[i] = v.List.Values[i].plain()
		}
		return list
	case v.Bool != nil:
		return *v.Bool
	case v.Whole != nil:
		return json.Number(bytes.Trim(v.Whole, `"`))
	}
	return v.text()
}

func dict(list []attribute) map[string]any {
	of := make(map[string]any, len(list))
	for i := range list {
		of[list[i].Key] = list[i].Value.plain()
	}
	return of
}

// whole parses a 64-bit number, which is text in OTLP's JSON; 0 if there is none.
func whole(raw json.RawMessage) int64 {
	n, err := strconv.ParseInt(string(bytes.Trim(raw, `"`)), 10, 64)
	if err != nil || n < 0 {
		return 0
	}
	return n
}
