package main

import (
	"io"
	"strings"
	"testing"
)

// Lines with rates are found among all test output, and are sorted.
func TestPageOfLog(t *testing.T) {
	const events = `{"Action":"run","Package":"github.com/sgtrace/sgtrace/analyze/tail","Test":"TestRateOfB"}
{"Action":"output","Package":"github.com/sgtrace/sgtrace/analyze/tail","Test":"TestRateOfB/one","Output":"    seeds.go:50: rate: tail: one: right in 3 of 4\n"}
{"Action":"output","Package":"github.com/sgtrace/sgtrace/analyze/tail","Test":"TestRateOfB/one","Output":"    missed in seeds [5]\n"}
{"Action":"output","Package":"github.com/sgtrace/sgtrace/analyze/change","Test":"TestRateOfA","Output":"    seeds.go:50: rate: two: right in 100 of 100\n"}
`
	rates, err := collectRates(strings.NewReader(events), io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	got := string(ratesPage(rates, "100", []string{"./..."}))
	const want = "| two | 100 | 100 | `TestRateOfA` in `analyze/change` |\n| tail: one | 3 | 4 | `TestRateOfB` in `analyze/tail` |\n"
	if !strings.HasSuffix(got, want) || !strings.Contains(got, "with 100 seeds") {
		t.Errorf("got %s", got)
	}

	again := string(mergeRates(got, []rate{{"analyze/tail", "TestRateOfB", "tail: another", "2", "2"}}))
	const replaced = "| two | 100 | 100 | `TestRateOfA` in `analyze/change` |\n| tail: another | 2 | 2 | `TestRateOfB` in `analyze/tail` |\n"
	if !strings.HasSuffix(again, ratesHead+replaced) || !strings.Contains(again, "with 100 seeds") {
		t.Errorf("rows measured again: got %s", again)
	}
}
