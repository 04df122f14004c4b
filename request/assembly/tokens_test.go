package assembly_test

import (
	"fmt"
	"testing"

	"github.com/sgtrace/sgtrace/request"
	"github.com/sgtrace/sgtrace/testkit/testset"
	"github.com/sgtrace/sgtrace/trace"
)

// A count of tokens that cannot be loses only itself, and is reported.
func TestImpossibleTokens(t *testing.T) {
	var d testset.Dump
	for i, tokens := range []int64{700, 1 << 62, -7} {
		d.Add(testset.Span{Trace: fmt.Sprintf("%032x", i+1), Name: fmt.Sprint(" Req 1234567", i), From: 1e6, To: 2e6, Attrs: testset.Attrs{
			"rid": fmt.Sprint("1234567", i), "module": "sglang::request", "gen_ai.usage.prompt_tokens": tokens, "gen_ai.usage.completion_tokens": int64(30)}})
	}
	s := d.Set(t)
	for i, want := range []int64{700, request.Unknown, request.Unknown} {
		if m := &s.Requests[i].Metrics; m.PromptTokens != want || m.CompletionTokens != 30 {
			t.Errorf("request %d: %d and %d tokens", i, m.PromptTokens, m.CompletionTokens)
		}
	}
	n := 0
	for _, x := range s.Diags.All() {
		if x.Message == trace.TokensImpossible {
			n++
		}
	}
	if n != 1 {
		t.Errorf("%d messages", n)
	}
}
