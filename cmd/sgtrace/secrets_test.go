package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/sgtrace/sgtrace/internal/secret"
)

// plantedSecret is a text that passes all tests of rules: prose, a key, a query.
const plantedSecret = "hf_plantedDoNotPublish tell me ?key=1"

// plant adds a secret under every name of the rules to the first lines of a dump, as
// attributes of resources, spans and events, plain and within others.
func plant(t *testing.T, dump string) {
	t.Helper()
	text := func(v string) map[string]any { return map[string]any{"stringValue": v} }
	attributes := []any{}
	add := func(key string, value any) {
		attributes = append(attributes, map[string]any{"key": key, "value": value})
	}
	for _, r := range secret.Rules {
		name := strings.NewReplacer("*.", "request.", ".*", ".0.content", "*", "_x").Replace(r.Name)
		add(name, text(plantedSecret))
	}
	add("Authorization", text(plantedSecret))
	add("list.prompt", map[string]any{"arrayValue": map[string]any{"values": []any{text(plantedSecret)}}})
	add("outer", map[string]any{"kvlistValue": map[string]any{"values": []any{map[string]any{"key": "x-api-key", "value": text(plantedSecret)}}}})

	data, err := os.ReadFile(dump)
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(string(data), "\n")
	for i := range lines[:3] {
		var doc map[string]any
		d := json.NewDecoder(strings.NewReader(lines[i]))
		d.UseNumber()
		if err := d.Decode(&doc); err != nil {
			t.Fatal(err)
		}
		plantIn(doc, attributes)
		line, err := json.Marshal(doc)
		if err != nil {
			t.Fatal(err)
		}
		lines[i] = string(line)
	}
	if err := os.WriteFile(dump, []byte(strings.Join(lines, "\n")), 0o600); err != nil {
		t.Fatal(err)
	}
}

// plantIn adds attributes to all lists of attributes in v.
func plantIn(v any, attributes []any) {
	switch v := v.(type) {
	case []any:
		for _, e := range v {
			plantIn(e, attributes)
		}
	case map[string]any:
		if list, ok := v["attributes"].([]any); ok {
			v["attributes"] = append(list, attributes...)
		}
		for key, e := range v {
			if key != "attributes" {
				plantIn(e, attributes)
			}
		}
	}
}

// kinetoWithSecrets is a trace whose arguments hold secrets, plain and within others.
const kinetoWithSecrets = `{"schemaVersion":1,"deviceProperties":[],"distributedInfo":{"rank":0,"world_size":1},"HF_TOKEN":"%[1]s","environ":{"A":"%[1]s"},
"traceEvents":[
{"ph":"X","cat":"cpu_op","name":"aten::mm","pid":1,"tid":1,"ts":1787000000000000,"dur":5,"args":{"External id":1,"Concrete Inputs":["","%[1]s"],"Input Dims":[[1,2]]}},
{"ph":"X","cat":"cpu_op","name":"aten::mul","pid":1,"tid":1,"ts":1787000000000010,"dur":5,"args":{"kwinputs":{"text":"%[1]s"},"Concrete Inputs":["1e-05","bicubic"]}},
{"ph":"X","cat":"user_annotation","name":"step","pid":1,"tid":1,"ts":1787000000000020,"dur":5,"args":{"prompt":"%[1]s","x":{"y":[{"api_key":"%[1]s"}]}}},
{"ph":"i","s":"t","cat":"cpu_instant_event","name":"point","pid":1,"tid":1,"ts":1787000000000030,"args":{"Authorization":"%[1]s"}}
]}
`

// Secrets in inputs of any kind reach no output of any command, and are counted; those
// in attributes and arguments do if the user says so.
func TestSecretsReachNoOutput(t *testing.T) {
	dir := t.TempDir()
	inExports := incident(t, dir)
	plant(t, filepath.Join(dir, "otel.jsonl"))
	kineto := filepath.Join(dir, "torch", "node9-TP9.json")
	if err := os.WriteFile(kineto, fmt.Appendf(nil, kinetoWithSecrets, plantedSecret), 0o600); err != nil {
		t.Fatal(err)
	}
	mark := strings.Fields(plantedSecret)[0]
	for _, c := range commandsOn {
		for where, text := range runOn(t, dir, "1", c.args) {
			for _, s := range [...]string{mark, inExports} {
				if i := strings.Index(text, s); i >= 0 {
					t.Errorf("%s: %s has a secret: ...%q...", c.name, where, text[max(0, i-80):i+len(s)])
				}
			}
		}
	}
	got := runOn(t, dir, "1", "merge OTEL TORCH NSYS -o OUT/m.json")
	for _, want := range []string{"node9-TP9.json+", `may hold a prompt or credentials; left out (--keep-secrets keeps it) [secret-left-out] (5 times`, "otel.jsonl:1: info: attribute"} {
		if !strings.Contains(got["stderr"], want) {
			t.Errorf("no %q in %s", want, got["stderr"])
		}
	}
	if text := got["m.json"]; !strings.Contains(text, `"Concrete Inputs":["1e-05","bicubic"]`) {
		t.Error("harmless inputs of an operator are missing")
	}
	kept := runOn(t, dir, "1", "merge OTEL TORCH NSYS --keep-secrets -o OUT/m.json")
	for _, want := range []string{`"Concrete Inputs":["","` + plantedSecret, `"kwinputs":{"text":"` + plantedSecret, `"prompt":"` + plantedSecret,
		`"api_key":"` + plantedSecret, `"Authorization":"` + plantedSecret, `"gen_ai.prompt":"` + plantedSecret, `"list.prompt":["` + plantedSecret,
		`"outer":{"x-api-key":"` + plantedSecret} {
		if !strings.Contains(kept["m.json"], want) {
			t.Errorf("--keep-secrets: no %q", want)
		}
	}
	if strings.Contains(kept["stderr"], "secret-left-out") || strings.Contains(kept["m.json"], inExports) {
		t.Error("--keep-secrets leaves secrets out, or reads those of exports")
	}
}
