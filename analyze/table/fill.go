package table

import (
	"regexp"
	"strings"

	"github.com/olekukonko/tablewriter/pkg/twwidth"

	"github.com/sgtrace/sgtrace/analyze/words"
)

// numberWithUnit is what stays on one line.
var numberWithUnit = regexp.MustCompile(`(\d) (%|[num]?s\b|/s\b|[kM]?B\b)`)

// Fill divides a text into lines between words: the first one of at most first columns, all
// others of at most rest. A word that is longer has a line of its own. A number stays with
// its unit, behind a no-break space.
func Fill(text string, first, rest int) (lines []string) {
	line, used, room := "", 0, first
	for word := range strings.SplitSeq(numberWithUnit.ReplaceAllString(words.Clean(text), "$1\u00a0$2"), " ") {
		width := twwidth.Width(word)
		switch {
		case used == 0 && line == "":
			line, used = word, width
		case used+1+width > room:
			lines, line, used, room = append(lines, strings.TrimRight(line, " ")), word, width, rest
		default:
			line, used = line+" "+word, used+1+width
		}
	}
	return append(lines, strings.TrimRight(line, " "))
}
