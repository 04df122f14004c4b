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

// Command is a command that the UI runs once the trace is loaded. The UI accepts only commands from its
// list of startup commands, and drops all of them if one is malformed:
// https://perfetto.dev/docs/visualization/commands-automation-reference
type Command struct {
	ID   string   `json:"id"`
	Args []string `json:"args"`
}

// Commands arrange a trace drawn by sgtrace: they expand the findings, the load, and the logs, and pin the
// rows that the trace names. For Chrome JSON, the UI shows groups and rows with their numbers. If the trace
// has no such tracks, the commands do nothing. Rows of one rank are pinned by one command, to keep the link
// short.
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
		// Groups before the others, whose names begin with a space, repeat names of rows.
		commands = append(commands, Command{"dev.perfetto.PinTracksByRegex", []string{`^([^ ].* > )?(` + strings.Join(kinds, "|") + `)` + quote(rank) + `( \d+)?$`, "path"}})
	}
	return commands
}

// rankSeparator separates a row's kind from its rank, like naming.Separator.
const rankSeparator = " · "

// kindAndRank splits the name of a row, the last element of its path, into its kind and its rank. Names of
// rows with a rank are unique, so a link needs no paths.
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

// quote returns a regular expression, for Go and JavaScript, that matches text.
func quote(text string) string { return strings.ReplaceAll(regexp.QuoteMeta(text), "/", `\/`) }

// Link returns the address of a UI that makes it fetch file, a base name, from [Addr], and arrange it as
// the file says.
func Link(ui, file string, o trace.Opening) string {
	// Escaped twice: as a path, and then as a value among the UI's own arguments. A plain name looks the
	// same after both.
	link := strings.TrimRight(ui, "/") + "/#!/?url=http://" + Addr + "/" + url.QueryEscape(url.PathEscape(file))
	if o.From < o.To {
		link += fmt.Sprintf("&visStart=%d&visEnd=%d", o.From, o.To)
	}
	return link + "&startupCommands=" + escapeValue(marshal(Commands(o)))
}

// marshal writes commands as JSON. A command without arguments gets an empty list, since null is malformed;
// < and > are not escaped, since that would only make the link longer.
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

// escapeValue escapes like JavaScript's encodeURIComponent, which writes a space as %20 rather than +, but
// keeps characters that are safe there.
func escapeValue(s string) string {
	return strings.NewReplacer("+", "%20", "%3A", ":", "%2C", ",").Replace(url.QueryEscape(s))
}
