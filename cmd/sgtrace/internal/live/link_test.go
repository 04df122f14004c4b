package live

import (
	"encoding/json"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/sgtrace/sgtrace/trace"
)

func TestLink(t *testing.T) {
	expand := "%5B%7B%22id%22%3A%22dev.perfetto.ExpandTracksByRegex%22%2C%22args%22%3A%5B%22%5E(%20Findings%7C%20Load%7CLogs%20and%20metrics)(%20%5C%5Cd%2B)%3F%24%22%2C%22path%22%5D%7D"
	expand = strings.NewReplacer("(", "%28", ")", "%29", "%3A", ":", "%2C", ",").Replace(expand)
	for _, c := range []struct {
		ui, file string
		opening  trace.Opening
		want     string
	}{
		{UI, "out.pftrace.gz", trace.Opening{}, "https://ui.perfetto.dev/#!/?url=http://127.0.0.1:9001/out.pftrace.gz&startupCommands=" + expand + "%5D"},
		{UI + "/", "a b.json", trace.Opening{}, "https://ui.perfetto.dev/#!/?url=http://127.0.0.1:9001/a%2520b.json&startupCommands=" + expand + "%5D"},
		{"http://host:8080/perfetto", "a", trace.Opening{From: 7, To: 9}, "http://host:8080/perfetto/#!/?url=http://127.0.0.1:9001/a&visStart=7&visEnd=9&startupCommands=" + expand + "%5D"},
	} {
		if got := Link(c.ui, c.file, c.opening); got != c.want {
			t.Errorf("%q:\ngot  %s\nwant %s", c.file, got, c.want)
		}
	}
}

// The UI splits the fragment's arguments and fetches the url among them.
func TestLinkIsUnderstood(t *testing.T) {
	opening := trace.Opening{Pin: []string{"a > queued · decode DP1", `x (50%) & "+" [1] / \y`}, From: 1787000000000000000, To: 1787000001000000000}
	for _, file := range []string{"out.pftrace", "a b+c&d=e.json", "100%25 #1?.gz", "größe-日本.json.gz", "bad\xffname", `back\slash`} {
		_, args, _ := strings.Cut(Link(UI, file, opening), "#!/?")
		values, err := url.ParseQuery(args)
		if err != nil {
			t.Errorf("%q: %v", file, err)
			continue
		}
		fetch, err := url.Parse(values.Get("url"))
		if err != nil {
			t.Errorf("%q: %v", file, err)
			continue
		}
		if fetch.Host != Addr || fetch.Path != "/"+file || fetch.RawQuery != "" || fetch.Fragment != "" {
			t.Errorf("%q: the UI would fetch %s", file, fetch)
		}
		if from, to := values.Get("visStart"), values.Get("visEnd"); from != "1787000000000000000" || to != "1787000001000000000" {
			t.Errorf("%q: the UI would show %s to %s", file, from, to)
		}
		var commands []Command
		if err := json.Unmarshal([]byte(values.Get("startupCommands")), &commands); err != nil {
			t.Errorf("%q: %v", file, err)
		}
		same := func(x, y Command) bool { return x.ID == y.ID && slices.Equal(x.Args, y.Args) }
		if !slices.EqualFunc(commands, Commands(opening), same) {
			t.Errorf("%q: the UI would run %q", file, commands)
		}
	}
}

// This checks the effect of the commands on the tracks of a trace. Go and JavaScript agree on the
// regular expressions used here.
func TestCommands(t *testing.T) {
	const expand, pin = "dev.perfetto.ExpandTracksByRegex", "dev.perfetto.PinTracksByRegex"
	commands := Commands(trace.Opening{Pin: []string{"By process > a > TP0 · scheduler (x) > queued · TP0", "steps · decode DP1"}})
	for _, c := range []struct{ path, want string }{
		{" Findings", expand},
		{" Load", expand},
		{" Load 3", expand},
		{" Load > GPU busy by rank", ""},
		{"By process", ""},
		{"By process > a > TP0 · scheduler (x) > queued · TP0", pin},
		{"By process > a > TP1 · scheduler (x) > queued · TP1", ""},
		{" Load > queued · TP0", ""},
		{"Side by side > Steps > steps · decode DP1", pin},
		{"Side by side > Steps 4 > steps · decode DP1 17", pin},
		{"Side by side > Steps > steps · decode DP1 TP0", ""},
		{"By request", ""},
	} {
		got := ""
		for _, command := range commands {
			if len(command.Args) != 2 || command.Args[1] != "path" {
				t.Fatalf("%s: args %q, want an expression for paths", command.ID, command.Args)
			}
			if regexp.MustCompile(strings.ReplaceAll(command.Args[0], `\/`, "/")).MatchString(c.path) {
				got += command.ID
			}
		}
		if got != c.want {
			t.Errorf("%s: got %q, want %q", c.path, got, c.want)
		}
	}
}
