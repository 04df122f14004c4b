package serve

import (
	"bytes"
	"encoding/json"
	"net/url"
	"strings"
)

// Command is a command that the UI runs once the trace is loaded. The UI runs
// only commands on its list of startup commands, and drops all of them when one
// is malformed: https://perfetto.dev/docs/visualization/commands-automation-reference
type Command struct {
	ID   string   `json:"id"`
	Args []string `json:"args"`
}

// DefaultCommands arrange a trace that sgtrace has drawn: the hosts are opened,
// so that every process shows, and the counters of all schedulers are pinned
// above them, as are the same rows of all ranks, one under another. Where the
// trace has no such tracks they do nothing.
func DefaultCommands() []Command {
	return []Command{
		{"dev.perfetto.ExpandTracksByRegex", []string{`^By process( > [^>]+)?$`, "path"}},
		{"dev.perfetto.PinTracksByRegex", []string{`^By process > [^>]+ > [^>]*[sS]cheduler[^>]* > (queued|running|batch size) · [^>]+$`, "path"}},
		{"dev.perfetto.PinTracksByRegex", []string{`^Side by side > (Steps|Compute|Communication) > [^>]+$`, "path"}},
	}
}

// Link is the address of the UI that makes it fetch file, a base name, from
// [Addr] and then run commands.
func Link(file string, commands []Command) string {
	// Escaped twice: once as a path, and that as a value among the UI's own
	// arguments. A plain name looks the same after both.
	link := UI + "/#!/?url=http://" + Addr + "/" + url.QueryEscape(url.PathEscape(file))
	if len(commands) > 0 {
		link += "&startupCommands=" + escapeValue(marshal(commands))
	}
	return link
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
// as %20 and not as +.
func escapeValue(s string) string {
	return strings.ReplaceAll(url.QueryEscape(s), "+", "%20")
}
