package screen

import (
	"fmt"
	"io"
	"regexp"
	"strconv"
	"strings"

	"github.com/sgtrace/sgtrace/analyze/table"
	"github.com/sgtrace/sgtrace/trace"
)

// PrintDiags prints the problems of the inputs. It skips notices whose code was told before, and all
// notices if the screen is quiet. Lines fit width; 0 is no limit.
func (s *Screen) PrintDiags(w io.Writer, width int, all []trace.Diag, told func(code string) bool) {
	for _, d := range together(all) {
		lost := d.Severity >= trace.DataLoss
		if !lost && (s.Quiet || told(d.Code)) {
			continue
		}
		tone := table.Plain
		if lost {
			tone = table.Bad
		}
		lines := []string{Printable(d.text)}
		if width > 0 {
			lines = table.Fill(lines[0], width, width-2)
		}
		for i, line := range lines {
			if i > 0 {
				line = "  " + line
			}
			fmt.Fprintln(w, s.ErrStyle.Paint(tone, line))
		}
	}
}

// A foldedDiag is a message about one file or several.
type foldedDiag struct {
	trace.Diag
	text string
}

// together combines notices about several files that differ only in numbers into one. The combined message names two
// files, or the first and the number of others, and takes the place of the first. Losses stay separate.
func together(all []trace.Diag) (list []foldedDiag) {
	at := map[string]int{} // index in list, by code and words
	files := map[string][]string{}
	for _, d := range all {
		d.Msg = shorten(d.Msg)
		words := d.Code + digits.ReplaceAllString(d.Msg, "")
		i, seen := at[words]
		if !seen || d.Severity >= trace.DataLoss || d.Pos.File == "" {
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
		if list[i].Msg != d.Msg {
			list[i].text = fmt.Sprintf("%s (%s; the numbers are of this one)", list[i].Diag.String(), more)
		}
	}
	return list
}

var digits = regexp.MustCompile(`[0-9]+`)

// shorten cuts the middle out of a message too long to read: names in it may have any length.
func shorten(msg string) string {
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

// Printable replaces unprintable characters: they could be escape sequences, or change the order in which a
// line reads.
func Printable(s string) string {
	return strings.Map(func(r rune) rune {
		if !strconv.IsPrint(r) {
			return '\ufffd'
		}
		return r
	}, s)
}
