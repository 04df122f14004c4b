package page

import "testing"

func TestCommand(t *testing.T) {
	src := Source{Select: []string{"--from", "+30s"}, Inputs: []string{"dumps/*.zst", "it's", "", "plain_1.jsonl"}}
	const want = `sgtrace report --tail=p99 --from +30s 'dumps/*.zst' 'it'\''s' '' plain_1.jsonl`
	if got := src.Command("--tail=p99"); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}
