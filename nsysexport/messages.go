package nsysexport

import (
	"strings"

	"github.com/sgtrace/sgtrace/nsysexport/rows"
	"github.com/sgtrace/sgtrace/trace"
)

// reportMessages reports what the profiler warned about: data that it lost, rights that it
// did not have.
func reportMessages(src *rows.Source) {
	type place struct {
		message *trace.Message
		text    string
	}
	counts := map[place]int{}
	var order []place
	for m := range src.Messages {
		p := place{trace.NsysWarning, strings.TrimSpace(m.Text)}
		if m.Severity > 2 {
			p.message = trace.NsysError
		}
		if counts[p]++; counts[p] == 1 {
			order = append(order, p)
		}
	}
	texts := map[*trace.Message][]string{}
	for _, p := range order {
		text := strings.Join(strings.Fields(p.text), " ")
		texts[p.message] = append(texts[p.message], text)
	}
	for _, m := range []*trace.Message{trace.NsysError, trace.NsysWarning} {
		if list := texts[m]; len(list) > 0 {
			src.Diag(m, "", 0, strings.Join(list, " | "))
		}
	}
}
