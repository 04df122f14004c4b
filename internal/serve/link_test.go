package serve

import (
	"encoding/json"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"
)

func TestLink(t *testing.T) {
	for _, c := range []struct {
		file     string
		commands []Command
		want     string
	}{
		{"out.pftrace.gz", nil, "https://ui.perfetto.dev/#!/?url=http://127.0.0.1:9001/out.pftrace.gz"},
		{"a b.json", nil, "https://ui.perfetto.dev/#!/?url=http://127.0.0.1:9001/a%2520b.json"},
		{"50%#?&+.json", nil, "https://ui.perfetto.dev/#!/?url=http://127.0.0.1:9001/50%2525%2523%253F%26%2B.json"},
		{"é.json", nil, "https://ui.perfetto.dev/#!/?url=http://127.0.0.1:9001/%25C3%25A9.json"},
		{"a", []Command{{"x.Y", nil}}, "https://ui.perfetto.dev/#!/?url=http://127.0.0.1:9001/a&startupCommands=" +
			"%5B%7B%22id%22%3A%22x.Y%22%2C%22args%22%3A%5B%5D%7D%5D"},
		{"a", []Command{{"x.Y", []string{"b > c+"}}}, "https://ui.perfetto.dev/#!/?url=http://127.0.0.1:9001/a&startupCommands=" +
			"%5B%7B%22id%22%3A%22x.Y%22%2C%22args%22%3A%5B%22b%20%3E%20c%2B%22%5D%7D%5D"},
	} {
		if got := Link(c.file, c.commands); got != c.want {
			t.Errorf("%q:\ngot  %s\nwant %s", c.file, got, c.want)
		}
	}
}

// The UI takes the fragment's arguments apart and fetches the url among them.
func TestLinkIsUnderstood(t *testing.T) {
	for _, file := range []string{"out.pftrace", "a b+c&d=e.json", "100%25 #1?.gz", "größe-日本.json.gz", "bad\xffname", `back\slash`} {
		_, args, _ := strings.Cut(Link(file, DefaultCommands()), "#!/?")
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
		var commands []Command
		if err := json.Unmarshal([]byte(values.Get("startupCommands")), &commands); err != nil {
			t.Errorf("%q: %v", file, err)
		}
		same := func(x, y Command) bool { return x.ID == y.ID && slices.Equal(x.Args, y.Args) }
		if !slices.EqualFunc(commands, DefaultCommands(), same) {
			t.Errorf("%q: the UI would run %q", file, commands)
		}
	}
}

// What the default commands do to the tracks of a trace. Go's expressions and
// JavaScript's agree on what is used here.
func TestDefaultCommands(t *testing.T) {
	const expand, pin = "dev.perfetto.ExpandTracksByRegex", "dev.perfetto.PinTracksByRegex"
	for _, c := range []struct{ path, want string }{
		{"By process", expand},
		{"By process > decode-0", expand},
		{"By process > service router", expand},
		{"By process > a > TP0 · scheduler · pid 713", ""},
		{"By process > a > TP0 · scheduler · pid 713 > queued · TP0", pin},
		{"By process > a > TP0 · scheduler · pid 713 > running · TP0", pin},
		{"By process > a > PP1 TP0 · prefill scheduler · pid 7 > batch size · prefill PP1 TP0", pin},
		{"By process > a > TP0 · scheduler · pid 713 > lane 1", ""},
		{"By process > a > Tokenizer · pid 7 > queued · Tokenizer", ""},
		{"By process > scheduler > Tokenizer · pid 7 > queued · Tokenizer", ""},
		{"By request", ""},
		{"By request > Req 7ca07386 > TP0 · scheduler", ""},
		{"Global Track Events > By process", ""},
	} {
		got := ""
		for _, command := range DefaultCommands() {
			if len(command.Args) != 2 || command.Args[1] != "path" {
				t.Fatalf("%s: args %q, want an expression for paths", command.ID, command.Args)
			}
			if regexp.MustCompile(command.Args[0]).MatchString(c.path) {
				got += command.ID
			}
		}
		if got != c.want {
			t.Errorf("%s: got %q, want %q", c.path, got, c.want)
		}
	}
}
