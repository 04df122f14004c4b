package live

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/url"
	"regexp"
	"strings"

	"github.com/sgtrace/sgtrace/profile"
	"github.com/sgtrace/sgtrace/trace"
)

// Command is a command that the UI runs once the trace is loaded. The UI runs
// only commands on its list of startup commands, and drops all of them when one
// is malformed: https://perfetto.dev/docs/visualization/commands-automation-reference
type Command struct {
	ID   string   `json:"id"`
	Args []string `json:"args"`
}

// Commands arrange a trace that sgtrace has drawn: what stands out and the load are
// expanded, nothing else, and the rows that the trace names are pinned above. Of Chrome
// JSON, the UI shows groups and rows with their numbers. Where the trace has no such
// tracks, commands do nothing. Rows of one rank are pinned by one command: the link is short.
func Commands(o trace.Opening) []Command {
	commands := []Command{{"dev.perfetto.ExpandTracksByRegex", []string{`^(` + profile.Findings + `|` + profile.Load + `|` + profile.Logged + `)( \d+)?$`, "path"}}}
	for i := 0; i < len(o.Pin); {
		var kinds []string
		_, rank := kindAndRank(o.Pin[i])
		for ; i < len(o.Pin); i++ {
			kind, of := kindAndRank(o.Pin[i])
			if of != rank {
				break
			}
			kinds = append(kinds, quote(kind))
		}
		// Groups in front of the others, whose names begin with a blank, repeat names of rows.
		commands = append(commands, Command{"dev.perfetto.PinTracksByRegex", []string{`^([^ ].* > )?(` + strings.Join(kinds, "|") + `)` + quote(rank) + `( \d+)?$`, "path"}})
	}
	return commands
}

// rankSeparator stands between what a row has and whose that is, as the separator of names does.
const rankSeparator = " · "

// kindAndRank divides the name of a row, the last of its path, into what it has and whose that is.
// Names of rows that have a rank are found nowhere else, so that a link needs no paths.
func kindAndRank(path string) (kind, rank string) {
	name := path
	if at := strings.LastIndex(path, trace.PathSeparator); at >= 0 {
		name = path[at+len(trace.PathSeparator):]
	}
	if at := strings.Index(name, rankSeparator); at >= 0 {
		return name[:at], name[at:]
	}
	return name, ""
}

// quote returns an expression that matches a text, in Go and in JavaScript.
func quote(text string) string { return strings.ReplaceAll(regexp.QuoteMeta(text), "/", `\/`) }

// Link returns the address of a UI that makes it fetch file, a base name, from [Addr], and
// arrange it as the file says.
func Link(ui, file string, o trace.Opening) string {
	// Escaped twice: once as a path, and that as a value among the UI's own
	// arguments. A plain name looks the same after both.
	link := strings.TrimRight(ui, "/") + "/#!/?url=http://" + Addr + "/" + url.QueryEscape(url.PathEscape(file))
	if o.From < o.To {
		link += fmt.Sprintf("&visStart=%d&visEnd=%d", o.From, o.To)
	}
	return link + "&startupCommands=" + escapeValue(marshal(Commands(o)))
}

// marshal writes commands as JSON. A command without arguments gets an empty
// list, for null is malformed; and < and > stay as they are, as escapes would
// only make the link longer.
func marshal(commands []Command) string {
	list := make([]Command, len(commands))
	for i, c := range commands {
		list[i] = Command{c.ID, append([]string{}, c.Args...)}
	}
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	_ = enc.Encode(list) // strings always encode
	return strings.TrimSpace(b.String())
}

// escapeValue escapes like JavaScript's encodeURIComponent, which writes a blank
// as %20 and not as +, but for signs that need it nowhere.
func escapeValue(s string) string {
	return strings.NewReplacer("+", "%20", "%3A", ":", "%2C", ",").Replace(url.QueryEscape(s))
}
