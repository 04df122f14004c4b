package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/sgtrace/sgtrace/docs"
	"github.com/sgtrace/sgtrace/golden/simulator"
)

// Every command in docs/AGENTS.md prints JSON that satisfies docs/schema.json and has a value at
// each path listed beside the command.
func TestAgents(t *testing.T) {
	t.Chdir(t.TempDir())
	requests := simulator.DefaultConfig(0).Requests
	demoOf(t, "incident", 1, requests)
	demoOf(t, "yesterday", 2, requests)
	schema := parseSchema(t)
	code := regexp.MustCompile("`([^`]+)`")
	printed, rows := map[string]any{}, 0
	for line := range strings.Lines(docs.Agents) {
		cells := strings.Split(line, "|")
		if len(cells) != 5 || !strings.HasPrefix(strings.TrimSpace(cells[2]), "`sgtrace ") {
			continue
		}
		rows++
		command := strings.Trim(cells[2], " `")
		if printed[command] == nil {
			var out, errOut bytes.Buffer
			if status := run(shellWords(command), nil, &out, &errOut); status != exitOK && status != exitGate {
				t.Fatalf("%s: status %d: %s", command, status, errOut.String())
			}
			var v any
			if err := json.Unmarshal(out.Bytes(), &v); err != nil {
				t.Fatalf("%s: %v", command, err)
			}
			for _, wrong := range schema.check(schema.root, v, "") {
				t.Errorf("%s: %s", command, wrong)
			}
			printed[command] = v
		}
		for _, m := range code.FindAllStringSubmatch(cells[3], -1) {
			if !slices.ContainsFunc(valuesAt(t, printed[command], m[1]), func(v any) bool { return v != nil }) {
				t.Errorf("%s has nothing at %s", command, m[1])
			}
		}
	}
	if rows < 10 {
		t.Errorf("%d rows of questions", rows)
	}
}

// valuesAt returns the values at a path in jq notation: fields, indexes, and [] for all elements of an array.
func valuesAt(t *testing.T, v any, path string) []any {
	t.Helper()
	step := regexp.MustCompile(`^(?:\.([a-z_0-9]+)|\[([0-9]*)\])`)
	values := []any{v}
	for path != "" {
		m := step.FindStringSubmatch(path)
		if m == nil {
			t.Fatalf("no path: %s", path)
		}
		path = path[len(m[0]):]
		var next []any
		for _, v := range values {
			switch v := v.(type) {
			case map[string]any:
				next = append(next, v[m[1]])
			case []any:
				if i, err := strconv.Atoi(m[2]); err == nil && i < len(v) {
					v = v[i : i+1]
				} else if err == nil {
					v = nil
				}
				next = append(next, v...)
			}
		}
		values = next
	}
	return values
}

// A jsonSchema validates values against the subset of JSON Schema that docs/schema.json uses.
// Fields that the schema does not list are errors here, although readers should ignore them.
type jsonSchema struct {
	root any
	defs map[string]any
}

func parseSchema(t *testing.T) *jsonSchema {
	t.Helper()
	var root map[string]any
	if err := json.Unmarshal([]byte(docs.Schema), &root); err != nil {
		t.Fatal(err)
	}
	return &jsonSchema{root, root["$defs"].(map[string]any)}
}

// check returns the violations in a value.
func (s *jsonSchema) check(of, v any, path string) (wrong []string) {
	schema := of.(map[string]any)
	if ref, ok := schema["$ref"].(string); ok {
		return s.check(s.defs[strings.TrimPrefix(ref, "#/$defs/")], v, path)
	}
	if choices, ok := schema["oneOf"].([]any); ok {
		for _, choice := range choices {
			if wrong = s.check(choice, v, path); wrong == nil {
				return nil
			}
		}
		return wrong
	}
	if list, ok := schema["enum"].([]any); ok && !slices.Contains(list, v) {
		return []string{fmt.Sprintf("%s is %v, want one of %v", path, v, list)}
	}
	if want := schema["type"]; want != nil && !hasType(want, v) {
		return []string{fmt.Sprintf("%s is %v, want %v", path, v, want)}
	}
	if pattern, ok := schema["pattern"].(string); ok && !regexp.MustCompile(pattern).MatchString(v.(string)) {
		return []string{fmt.Sprintf("%s is %q, want %s", path, v, pattern)}
	}
	switch v := v.(type) {
	case map[string]any:
		return s.checkObject(schema, v, path)
	case []any:
		for i, item := range v {
			wrong = append(wrong, s.check(schema["items"], item, fmt.Sprintf("%s[%d]", path, i))...)
		}
	}
	return wrong
}

func (s *jsonSchema) checkObject(schema, v map[string]any, path string) (wrong []string) {
	properties, ok := schema["properties"].(map[string]any)
	if !ok {
		return nil
	}
	required, _ := schema["required"].([]any)
	for _, name := range required {
		if _, ok := v[name.(string)]; !ok {
			wrong = append(wrong, path+" has no "+name.(string))
		}
	}
	for name, x := range v {
		if properties[name] == nil {
			wrong = append(wrong, path+"."+name+" is not in docs/schema.json")
			continue
		}
		wrong = append(wrong, s.check(properties[name], x, path+"."+name)...)
	}
	return wrong
}

// hasType reports whether a value has the wanted type, or one of several.
func hasType(want, v any) bool {
	if list, ok := want.([]any); ok {
		return slices.ContainsFunc(list, func(one any) bool { return hasType(one, v) })
	}
	switch want {
	case "null":
		return v == nil
	case "integer":
		n, ok := v.(float64)
		return ok && n == float64(int64(n))
	}
	kinds := map[any]reflect.Kind{"object": reflect.Map, "array": reflect.Slice, "string": reflect.String, "number": reflect.Float64}
	return v != nil && reflect.TypeOf(v).Kind() == kinds[want]
}

// The checker finds violations; otherwise TestAgents would accept any output.
func TestSchemaChecker(t *testing.T) {
	schema := parseSchema(t)
	const good = `{"schema":"sgtrace.report.kernels/v2","main":null,"inputs":[{"name":"a","size_bytes":1}],"warnings":[],"tables":[],"findings":[]}`
	for change, says := range map[string]string{
		"":                                "",
		`"main":null>"main":1`:            ".main is 1",
		`"inputs":[>"inputs":[3,`:         ".inputs[0] is 3",
		`"size_bytes":1>"size":1`:         ".inputs[0].size is not in docs/schema.json",
		`"size_bytes":1>"x":1`:            ".inputs[0] has no size_bytes",
		`"size_bytes":1>"size_bytes":1.5`: "want [integer null]",
		`"warnings":[]>"warnings":[{"severity":"bad","text":"x"}]`: "want one of",
		`kernels/v2>kernels`: "want ^sgtrace",
	} {
		from, to, _ := strings.Cut(change, ">")
		var v any
		if err := json.Unmarshal([]byte(strings.Replace(good, from, to, 1)), &v); err != nil {
			t.Fatal(err)
		}
		wrong := strings.Join(schema.check(schema.root, v, ""), "; ")
		if (says == "") != (wrong == "") || !strings.Contains(wrong, says) {
			t.Errorf("%s: %q, want %q", change, wrong, says)
		}
	}
}
