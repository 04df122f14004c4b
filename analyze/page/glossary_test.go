package page

import (
	"html"
	"regexp"
	"strings"
	"testing"
)

func TestExplained(t *testing.T) {
	for _, c := range []struct{ text, want string }{
		{"p99 of TTFT <b>", `<abbr title="99 % of the values are no larger">p99</abbr> of <abbr title="time to first token`},
		{"decode DP3 TP1", `<abbr title="data-parallel rank 3: DP ranks share the requests among them">DP3</abbr>`},
		{"HTTP2 p999 decoded", "HTTP2 p999 decoded"},
		{`<img src="x">`, "&lt;img src=&#34;x&#34;&gt;"},
	} {
		if got := string(explained(c.text)); !strings.Contains(got, c.want) {
			t.Errorf("%q is %s", c.text, got)
		}
	}
	if got := string(explained("E2E E2E")); strings.Count(got, "<abbr") != 1 {
		t.Errorf("a word is explained twice: %s", got)
	}
}

// Explanations do not change the text itself.
func TestExplainedKeepsText(t *testing.T) {
	tag := regexp.MustCompile(`</?abbr[^>]*>`)
	for _, text := range append(hostile, "TTFT, ITL and E2E of decode TP0", "TP0TP1 TP99", "") {
		want := html.EscapeString(strings.NewReplacer("\u2028", `\u2028`, "\u2029", `\u2029`, "\u202e", `\u202e`).Replace(text))
		if got := tag.ReplaceAllString(string(explained(text)), ""); got != want {
			t.Errorf("%q became %q", text, got)
		}
	}
}

// Every word in the glossary is recognized in a text.
func TestGlossaryIsUsed(t *testing.T) {
	for word, meaning := range glossary() {
		if got := string(explained("the " + word + " of it")); !strings.Contains(got, html.EscapeString(meaning)) {
			t.Errorf("%s is not explained: %s", word, got)
		}
	}
}
