package otlpjson

import (
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"math/big"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// These functions convert JSON values as the package does.

func message(v any, null bool) object {
	o, ok := v.(object)
	if !ok && !(null && v == nil) {
		refuse("%v is no object", v)
	}
	return o
}

func elements(v any) []any {
	list, ok := v.([]any)
	if !ok && v != nil {
		refuse("%v is no list", v)
	}
	return list
}

func text(v any) string {
	s, ok := v.(string)
	if !ok && v != nil {
		refuse("%v is no text", v)
	}
	return s
}

// scalarText returns the text of a number or word, bare or quoted.
func scalarText(v any) string {
	switch v := v.(type) {
	case string:
		return v
	case json.Number:
		return v.String()
	case bool:
		return strconv.FormatBool(v)
	}
	refuse("%v is no scalar", v)
	return ""
}

var wholeNumber = regexp.MustCompile(`^[+-]?0*[0-9]{1,18}(\.[0-9]{0,18})?([eE][+-]?[0-9]{1,4})?$|^[0-9]{19}\.0*$`)

// hugeNumber matches numbers that would keep big.Rat busy for minutes.
var hugeNumber = regexp.MustCompile(`[eE][+-]?[0-9]{5}|.{50}`)

func parseInteger(s string) (int64, bool) {
	if hugeNumber.MatchString(s) {
		refuse("%q is beyond what the reference can judge", s)
	}
	exact, ok := new(big.Rat).SetString(s)
	if !ok || !exact.IsInt() || !exact.Num().IsInt64() {
		return 0, false
	}
	if !wholeNumber.MatchString(s) && strconv.FormatInt(exact.Num().Int64(), 10) != s {
		refuse("%q is beyond what the reference can judge", s)
	}
	return exact.Num().Int64(), true
}

func integer(v any) int64 {
	if v == nil {
		return 0
	}
	n, ok := parseInteger(scalarText(v))
	if !ok {
		refuse("%v is no integer", v)
	}
	return n
}

func enum(v any, names ...string) int {
	if v == nil {
		return 0
	}
	s := scalarText(v)
	if n, ok := parseInteger(s); ok && n >= 0 && n < int64(len(names)) {
		return int(n)
	}
	return max(0, slices.Index(names, s))
}

// id returns an id in hex of the given length. The input may be base64.
func id(v any, digits int) string {
	s := text(v)
	raw, err := hex.DecodeString(s)
	if len(s) != 0 && len(s) != 16 && len(s) != 32 {
		raw, err = base64.RawStdEncoding.DecodeString(strings.TrimRight(s, "="))
	}
	if err != nil || len(raw) != 0 && len(raw) != 8 && len(raw) != 16 {
		refuse("%q is no id", s)
	}
	padded := strings.Repeat("0", 32) + hex.EncodeToString(raw)
	if strings.Trim(padded[:len(padded)-digits], "0") != "" {
		refuse("%q is too long", s)
	}
	return padded[len(padded)-digits:]
}

// keyValues returns the entries of a list of KeyValue, in the format of plainArgs.
func keyValues(v any, depth int) (out []string) {
	for _, e := range elements(v) {
		var o object
		for _, m := range message(e, true) {
			if m.key == "key" || m.key == "value" {
				o = append(o, m)
			} else {
				foreign(m)
			}
		}
		for _, m := range o { // overridden values must be valid, too
			if m.key == "key" {
				text(m.value)
			} else {
				anyValues(m.value, depth)
			}
		}
		for _, value := range anyValues(o.last("value"), depth) {
			out = append(out, quote(text(o.last("key")))+"="+value)
		}
	}
	return out
}

// anyValues returns the value of an AnyValue, or none. Several values are not OTLP, and are all
// kept.
func anyValues(v any, depth int) (out []string) {
	if depth > 32 {
		refuse("too deep")
	}
	for _, m := range message(v, true) {
		kind := camel(m.key)
		if m.value == nil && strings.HasSuffix(kind, "Value") && kind != "arrayValue" && kind != "kvlistValue" {
			continue
		}
		switch kind {
		case "stringValue", "bytesValue":
			out = append(out, quote(text(m.value)))
		case "intValue":
			s := scalarText(m.value)
			if n, ok := parseInteger(s); ok {
				out = append(out, strconv.FormatInt(n, 10))
			} else {
				out = append(out, quote(s))
			}
		case "doubleValue":
			s := scalarText(m.value)
			if f, err := strconv.ParseFloat(s, 64); err == nil || f != 0 {
				out = append(out, plainFloat(f))
			} else {
				out = append(out, quote(s))
			}
		case "boolValue":
			s := scalarText(m.value)
			if s != "true" && s != "false" {
				s = quote(s)
			}
			out = append(out, s)
		case "arrayValue":
			var elems []string
			for _, m := range message(m.value, true) {
				if m.key != "values" {
					foreign(m)
					continue
				}
				for _, e := range elements(m.value) {
					elems = append(elems, anyValues(e, depth+1)...)
				}
			}
			out = append(out, plainList(elems))
		case "kvlistValue":
			var entries []string
			for _, m := range message(m.value, true) {
				if m.key != "values" {
					foreign(m)
					continue
				}
				entries = append(entries, keyValues(m.value, depth+1)...)
			}
			out = append(out, plainDict(entries))
		default:
			foreign(m)
		}
	}
	return out
}
