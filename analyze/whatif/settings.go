package whatif

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/sgtrace/sgtrace/analyze/replay"
	"github.com/sgtrace/sgtrace/analyze/words"
	"github.com/sgtrace/sgtrace/request"
)

// A Setting is a parameter of the deployment that can be changed.
type Setting struct {
	Name  string // name of the flag
	Value string // name of the value in the help
	Doc   string
	// Make makes the changes. If there are several, each is answered separately.
	Make func(r *Run, value string) ([]*Change, error)
}

// Settings are all settings.
var Settings = []Setting{
	{"kv", "FACTOR", "KV cache of FACTOR times its size", setKV},
	{"chunk", "TOKENS", "prefill steps of TOKENS of prompts at most", setNumber("chunk", (*replay.Plan).Chunk, func(r *Run) string {
		tokens, _ := r.Most()
		return fmt.Sprintf("the recorded steps computed %s tokens of prompts at most", words.Thousands(tokens))
	})},
	{"max-running", "N", "decode batches of N requests at most", setNumber("max-running", (*replay.Plan).MaxRunning, func(r *Run) string {
		_, running := r.Most()
		return fmt.Sprintf("the recorded batches decoded %s requests at most", words.Thousands(running))
	})},
	{"servers", "ROLE=N", "N servers of a role, such as decode=4", setServers},
	{"scale", "KIND=FACTOR", "prefill or decode steps that take FACTOR times as long, such as decode=0.9", setScale},
}

func setKV(r *Run, value string) ([]*Change, error) {
	f, err := factor(value)
	if err != nil {
		return nil, fmt.Errorf("--kv %s: %w", value, err)
	}
	switch waited := r.Plan(0).KV(f); {
	case !waited && f >= 1:
		return nil, fmt.Errorf("--kv %s: no request ever waited for KV cache, so that more of it changes nothing", value)
	case !waited:
		return nil, fmt.Errorf("--kv %s: no request ever waited for KV cache, and nothing tells how large it is", value)
	}
	return []*Change{{Name: "KV cache × " + value, do: func(p *replay.Plan) { p.KV(f) },
		Assumed: []string{fmt.Sprintf("the recorded KV cache holds %s tokens on each server: who had to wait for room tells", words.Thousands(r.KV()))}}}, nil
}

func factor(text string) (float64, error) {
	f, err := strconv.ParseFloat(text, 64)
	if err != nil || !(f > 0) || f > 1000 {
		return 0, fmt.Errorf("want a number above 0, such as 1.5")
	}
	return f, nil
}

func setNumber(name string, set func(p *replay.Plan, n int64), was func(*Run) string) func(r *Run, value string) ([]*Change, error) {
	return func(r *Run, value string) ([]*Change, error) {
		n, err := strconv.ParseInt(value, 10, 64)
		if err != nil || n < 1 {
			return nil, fmt.Errorf("--%s %s: want a number above 0", name, value)
		}
		return []*Change{{Name: name + " " + value, do: func(p *replay.Plan) { set(p, n) },
			Assumed: []string{"steps with other work than any recorded take as long as the model says", was(r)}}}, nil
	}
}

// roleValue parses "decode=4".
func roleValue(text string) (role request.Role, value string, err error) {
	name, value, ok := strings.Cut(text, "=")
	role, known := request.ParseRole(name)
	if !ok || !known || role != request.Prefill && role != request.Decode && role != request.Unified {
		return role, value, fmt.Errorf("want ROLE=N, with prefill, decode, or unified")
	}
	return role, value, nil
}

func setServers(r *Run, text string) ([]*Change, error) {
	role, value, err := roleValue(text)
	if err != nil {
		return nil, fmt.Errorf("--servers %s: %w", text, err)
	}
	n, err := strconv.Atoi(value)
	if err != nil || n < 1 || n > 1000 {
		return nil, fmt.Errorf("--servers %s: want a number from 1 to 1000", text)
	}
	had := r.Servers(r.Plan(0), role, n, replay.RoundRobin)
	if had == 0 {
		return nil, fmt.Errorf("--servers %s: no %s server computed anything", text, role)
	}
	var list []*Change
	for _, how := range []replay.Route{replay.MinLoaded, replay.RoundRobin} {
		list = append(list, &Change{Name: fmt.Sprintf("%d %s, %s", n, role, how), do: func(p *replay.Plan) { r.Servers(p, role, n, how) },
			Assumed: []string{fmt.Sprintf("new servers take as long as the %d recorded ones on average, and requests keep their cached tokens", had)}})
	}
	return list, nil
}

func setScale(_ *Run, text string) ([]*Change, error) {
	name, value, _ := strings.Cut(text, "=")
	f, err := factor(value)
	var kind replay.Kind
	switch {
	case err != nil:
	case name == replay.Prefill.String():
		kind = replay.Prefill
	case name == replay.Decode.String():
		kind = replay.Decode
	default:
		err = fmt.Errorf("want prefill or decode, such as decode=0.9")
	}
	if err != nil {
		return nil, fmt.Errorf("--scale %s: %w", text, err)
	}
	return []*Change{{Name: name + " steps × " + value, do: func(p *replay.Plan) { p.Scale(kind, f) }}}, nil
}
