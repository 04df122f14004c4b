package redact

import (
	"encoding/json"
	"regexp"
	"strings"
	"testing"

	"github.com/sgtrace/sgtrace/trace/naming"
)

func newMaker() *Maker { return NewMaker(New([]byte("0123456789abcdef"))) }

// A row has one column of each kind.
type row struct {
	place
	Name    string
	Kind    string `redact:"own"`
	Service string `redact:"structural"`
	Trace   string `redact:"trace"`
	Span    string `redact:"span"`
	Meta    string `redact:"json"`
	Dur     int64
}

type place struct {
	Host string `redact:"host"`
	ID   string `redact:"request"`
}

// Each column is replaced according to its kind, and the parts that identify the type of a span are kept.
func TestRow(t *testing.T) {
	m := newMaker()
	m.LearnHost("router-7")
	m.LearnHost("decode")
	m.LearnAttribute("rid", "7ca07386cc094a1eb7064c2c0f552c94")
	r := row{place{"router-7", "7ca07386cc094a1eb7064c2c0f552c94"}, "copy to router-7 of /home/jane/x.py", "router-7", "router-7", "0123456789abcdef0123456789abcdef",
		"decode Req 7ca07386", `{"Host":"router-7","PID":9007199254740993,"Parts":{"p":"router-7/TP0"},"Attributes":[{"Key":"user","Value":"jane doe"}]}`, 7}
	m.Row(&r)
	host, id := m.all.Host("router-7"), m.all.Request("7ca07386cc094a1eb7064c2c0f552c94")
	want := row{place{host, id}, "copy to " + host + " of " + m.Path("/home/jane/x.py"), "router-7", "router-7", r.Trace, "decode Req " + id[:8],
		`{"Attributes":[{"Key":"user","Value":"` + m.Text("jane doe") + `"}],"Host":"` + host + `","PID":9007199254740993,"Parts":{"p":"` + host + `/TP0"}}`, 7}
	if r != want {
		t.Errorf("have\n%+v\nwant\n%+v", r, want)
	}
	if !regexp.MustCompile(`^[0-9a-f]{32}$`).MatchString(r.Trace) || r.Trace == "0123456789abcdef0123456789abcdef" || r.Trace != newMaker().trace("0123456789abcdef0123456789abcdef") {
		t.Errorf("trace %s", r.Trace)
	}
}

// Attributes that join requests are kept.
func TestAttributesOfRows(t *testing.T) {
	m := newMaker()
	m.LearnAttribute("host.name", "sglang-router")
	for _, c := range []struct{ key, text, want string }{
		{"service.name", "sglang-router", "sglang-router"},
		{"thread_label", "Prefill Scheduler", "Prefill Scheduler"},
		{"module", "sglang::scheduler", "sglang::scheduler"},
		{"rid", "0x7c54428c6c5744bc", "0x7c54428c6c5744bc"},
		{"bootstrap_room", "0x7c54428c6c5744bc", "0x7c54428c6c5744bc"},
		{"message", "The request queue is full.", "The request queue is full."},
		{"host.name", "sglang-router", m.all.Host("sglang-router")},
		{"gen_ai.request.id", "user_42_turn_1", m.all.Request("user_42_turn_1")},
		{"prompt", "tell me a secret", m.Text("tell me a secret")},
		{"note", "42", "42"},
	} {
		if got := m.Attribute(c.key, c.text); got != c.want {
			t.Errorf("%s = %q becomes %q, want %q", c.key, c.text, got, c.want)
		}
	}
}

// A room number in a span name is kept; an id that was not learned is replaced.
func TestSpan(t *testing.T) {
	m := newMaker()
	for name, want := range map[string]string{"Sender Req 0x7c5442": "Sender Req 0x7c5442", "router Req 44123033": "router Req " + m.all.Request("44123033")[:8],
		"prefill_forward": "prefill_forward", "Bootstrap Room 0x7c5442": "Bootstrap Room 0x7c5442"} {
		if got := m.span(name); got != want {
			t.Errorf("%q becomes %q, want %q", name, got, want)
		}
	}
}

// Facts about ranks in a file name are kept, and a label keeps its rank.
func TestNamesOfFiles(t *testing.T) {
	m := newMaker()
	path := "/data/acme/acme-1755463000.5-TP-3-DP-1-EXTEND.trace.json.gz"
	have, want := m.Says(path), naming.ParseFile(path)
	if have.Rank != want.Rank || have.Time != want.Time || have.Stage != "EXTEND" || have.Run == want.Run {
		t.Errorf("%+v, want %+v", have, want)
	}
	if got := m.Label("gpu7/TP3"); got != m.all.Host("gpu7")+"/TP3" {
		t.Errorf("label %s", got)
	}
	for label, want := range map[string]string{"": "", "TP3": "TP3", "a/b": m.Text("a/b")} {
		if got := m.Label(label); got != want {
			t.Errorf("label %q becomes %q, want %q", label, got, want)
		}
	}
}

func TestStruct(t *testing.T) {
	type list struct{ Host, File, UUID string }
	m := newMaker()
	v := []list{{"node7", "/home/jane/a.json", "0000000a-6060-4242-8a8a-000000000002"}}
	made, err := Struct(m, &v)
	text, _ := json.Marshal(made)
	if err != nil || strings.Contains(string(text), "jane") || (*made)[0].Host != m.all.Host("node7") || v[0].Host != "node7" || !strings.HasPrefix((*made)[0].UUID, "gpu-") {
		t.Errorf("%s, %v", text, err)
	}
}
