package main

import (
	"fmt"
	"regexp"
	"strings"

	"github.com/sgtrace/sgtrace/analyze/document"
	"github.com/sgtrace/sgtrace/analyze/table"
	"github.com/sgtrace/sgtrace/cmd/sgtrace/internal/screen"
	"github.com/sgtrace/sgtrace/trace"
)

// printDiags prints what was found wrong with the inputs and reports whether any
// of it means that the result is not whole. On a terminal, lines fit its width.
func (c *command) printDiags() (lost bool) {
	width := screen.Width(c.err, c.env)
	for _, d := range folded(c.diags.All()) {
		if d.Diag.Message.Severity < trace.DataLoss && (c.screen.Quiet || tells(c.told, d.Diag.Message.Code)) {
			continue
		}
		tone := table.Plain
		if d.Diag.Message.Severity >= trace.DataLoss {
			tone = table.Bad
		}
		lines := []string{printable(d.text)}
		if width > 0 {
			lines = table.Fill(lines[0], width, width-2)
		}
		for i, line := range lines {
			if i > 0 {
				line = "  " + line
			}
			fmt.Fprintln(c.err, c.screen.ErrStyle.Paint(tone, line))
		}
	}
	return c.diags.Worst() >= trace.DataLoss
}

// tells reports whether warnings that were printed have a message.
func tells(told []document.Warning, code string) bool {
	for i := range told {
		if strings.Contains(told[i].Text, "["+code+"]") {
			return true
		}
	}
	return false
}

// A foldedDiag is what one file has, or several have.
type foldedDiag struct {
	Diag trace.Diag
	text string
}

// folded are messages in the order of their first files: a notice that several files have is one,
// with the names of two or the number of the others, if no more than numbers differ in it. Losses
// are told of each file.
func folded(all []trace.Diag) (list []foldedDiag) {
	at := map[string]int{} // in list, by code and words
	files := map[string][]string{}
	for _, d := range all {
		d.Msg = readable(d.Msg)
		words := d.Code + digits.ReplaceAllString(d.Msg, "")
		i, known := at[words]
		if !known || d.Severity >= trace.DataLoss || d.Pos.File == "" {
			at[words], files[words] = len(list), []string{d.Pos.String()}
			list = append(list, foldedDiag{d, d.String()})
			continue
		}
		files[words] = append(files[words], d.Pos.String())
		first, of, more := list[i].Diag, files[words], "2 files"
		if len(of) > 2 {
			of, more = []string{of[0], fmt.Sprintf("%d more files", len(of)-1)}, fmt.Sprintf("%d files", len(of))
		}
		first.Pos = trace.Pos{}
		list[i].text = strings.Join(of, " and ") + ": " + first.String()
		if list[i].Diag.Msg != d.Msg {
			list[i].text = fmt.Sprintf("%s (%s; the numbers are of this one)", list[i].Diag.String(), more)
		}
	}
	return list
}

var digits = regexp.MustCompile(`[0-9]+`)

// readable cuts the middle out of a message that nobody would read to its end: names in it
// may be of any length.
func readable(msg string) string {
	const most, side = 400, 190 // characters
	if len(msg) <= most {
		return msg
	}
	runes := []rune(msg)
	if len(runes) <= most {
		return msg
	}
	return string(runes[:side]) + " ... " + string(runes[len(runes)-side:])
}
