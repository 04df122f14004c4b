package main

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/sgtrace/sgtrace/trace/redact"
)

// plantedSecret passes as a secret for every rule: it is prose, a key, and a query.
const plantedSecret = "hf_plantedDoNotPublish tell me ?key=1"

// credentialsIn are texts with a credential, which is removed wherever it is.
var credentialsIn = []string{"Bearer plantedDoNotPublish1", "curl -H 'x-api-key: plantedDoNotPublish1'", "serve.py --api-key plantedDoNotPublish1",
	"GET /users?key=plantedDoNotPublish1", "redis://u:plantedDoNotPublish1@db", "sk-proj-plantedDoNotPublish1", "hf_plantedDoNotPublishAtAll1"}

// plantInExport adds credentials to names, messages and payloads of an export.
func plantInExport(t *testing.T, name string) {
	t.Helper()
	for _, c := range credentialsIn {
		execSQL(t, name, `UPDATE PROCESSES SET name = name || ' ' || ? WHERE name NOT LIKE 'nsys%'`, c)
		execSQL(t, name, `INSERT INTO DIAGNOSTIC_EVENT SELECT timestamp, timestampType, source, 3, ?, globalPid FROM DIAGNOSTIC_EVENT LIMIT 1`, c)
		execSQL(t, name, `INSERT INTO NVTX_EVENTS (start, end, eventType, text, globalTid, domainId, jsonText) SELECT start + 1, start + 9, 59, ?1, globalTid, domainId,
			json_object('a', ?1, 'systemPrompt', ?2, 'b', json_object('messages', ?2)) FROM NVTX_EVENTS WHERE end IS NOT NULL LIMIT 1`, c, plantedSecret)
	}
}

// plant adds a secret under every name in the rules to the first lines of a dump, as attributes of
// resources, spans, and events, plain and nested. The first two spans and events of a list suffice,
// because all go through the same code.
func plant(t *testing.T, dump string) {
	t.Helper()
	text := func(v string) map[string]any { return map[string]any{"stringValue": v} }
	attributes := []any{}
	add := func(key string, value any) {
		attributes = append(attributes, map[string]any{"key": key, "value": value})
	}
	for _, r := range redact.SecretRules {
		words := strings.Fields(strings.ReplaceAll(r.Name, "*", "0 value"))
		add("x."+strings.Join(words, "."), text(plantedSecret))
		for i := 1; i < len(words); i++ {
			words[i] = strings.ToUpper(words[i][:1]) + words[i][1:]
		}
		add("x."+strings.Join(words, ""), text(plantedSecret))
	}
	for i, credential := range credentialsIn {
		add(fmt.Sprintf("anything%d", i), text(credential))
	}
	add("anything", text(`{"user": 7, "messages": [{"content": "`+plantedSecret+`"}]}`))
	add("bytes.prompt", map[string]any{"bytesValue": base64.StdEncoding.EncodeToString([]byte(plantedSecret))})
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

// plantIn adds attributes to the attribute lists in v, in the first two elements of each array.
func plantIn(v any, attributes []any) {
	switch v := v.(type) {
	case []any:
		for _, e := range v[:min(len(v), 2)] {
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

// kinetoWithSecrets is a trace with secrets in its arguments, plain and nested.
const kinetoWithSecrets = `{"schemaVersion":1,"deviceProperties":[],"distributedInfo":{"rank":0,"world_size":1},"HF_TOKEN":"%[1]s","environ":{"A":"%[1]s"},
"traceEvents":[
{"ph":"X","cat":"cpu_op","name":"aten::mm","pid":1,"tid":1,"ts":1787000000000000,"dur":5,"args":{"External id":1,"Concrete Inputs":["","%[1]s"],"Input Dims":[[1,2]]}},
{"ph":"X","cat":"cpu_op","name":"aten::mul","pid":1,"tid":1,"ts":1787000000000010,"dur":5,"args":{"kwinputs":{"text":"%[1]s"},"Concrete Inputs":["1e-05","bicubic"]}},
{"ph":"X","cat":"user_annotation","name":"step","pid":1,"tid":1,"ts":1787000000000020,"dur":5,"args":{"prompt":"%[1]s","x":{"y":[{"api_key":"%[1]s"}]}}},
{"ph":"X","cat":"user_annotation","name":"serve.py --api-key plantedDoNotPublish1","pid":1,"tid":1,"ts":1787000000000026,"dur":2,"args":{"any":"Bearer plantedDoNotPublish1"}},
{"ph":"M","name":"process_name","pid":1,"args":{"name":"serve.py --api-key plantedDoNotPublish1"}},
{"ph":"M","name":"process_labels","pid":1,"args":{"labels":"api_key=plantedDoNotPublish1"}},
{"ph":"M","name":"thread_name","pid":1,"tid":1,"args":{"name":"HF_TOKEN=plantedDoNotPublish1"}},
{"ph":"i","s":"t","cat":"cpu_instant_event","name":"point","pid":1,"tid":1,"ts":1787000000000030,"args":{"Authorization":"%[1]s"}}
]}
`

// No command outputs secrets from inputs of any kind, and secrets are counted. Those in attributes
// and arguments are kept if the user asks for it.
func TestSecretsReachNoOutput(t *testing.T) {
	dir := t.TempDir()
	inExports := incident(t, dir)
	plant(t, filepath.Join(dir, "otel.jsonl"))
	kineto := filepath.Join(dir, "torch", "node9-TP9.json")
	if err := os.WriteFile(kineto, fmt.Appendf(nil, kinetoWithSecrets, plantedSecret), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, name := range glob(t, dir, "nsys", "*") {
		plantInExport(t, name)
	}
	const mark = "lantedDoNotPublish"
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
	for _, want := range []string{"node9-TP9.json+", `may hold a prompt or credentials; left out (--keep-secrets keeps it) [secret-left-out] (9 times`, "otel.jsonl:1: info: attribute"} {
		if !strings.Contains(got["stderr"], want) {
			t.Errorf("no %q in %s", want, got["stderr"])
		}
	}
	if text := got["m.json"]; !strings.Contains(text, `"Concrete Inputs":["1e-05","bicubic"]`) {
		t.Error("harmless inputs of an operator are missing")
	}
	kept := runOn(t, dir, "1", "merge OTEL TORCH NSYS --keep-secrets -o OUT/m.json")
	for _, want := range []string{`"Concrete Inputs":["","` + plantedSecret, `"kwinputs":{"text":"` + plantedSecret, `"prompt":"` + plantedSecret,
		`"api_key":"` + plantedSecret, `"Authorization":"` + plantedSecret, `"x.dsn":"` + plantedSecret, `"list.prompt":["` + plantedSecret,
		`"outer":{"x-api-key":"` + plantedSecret} {
		if !strings.Contains(kept["m.json"], want) {
			t.Errorf("--keep-secrets: no %q", want)
		}
	}
	if strings.Contains(kept["stderr"], "secret-left-out") || strings.Contains(kept["m.json"], inExports) {
		t.Error("--keep-secrets leaves secrets out, or reads those of exports")
	}
}
