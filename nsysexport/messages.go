package nsysexport

import (
	"strings"

	"github.com/sgtrace/sgtrace/nsysexport/rows"
	"github.com/sgtrace/sgtrace/trace"
)

// reportMessages reports what the profiler warned about: data that it lost, rights that it
// did not have, but not what the program does not use.
func reportMessages(src *rows.Source) {
	type place struct {
		message *trace.Message
		text    string
	}
	counts := map[place]int{}
	var order []place
	for m := range src.Messages {
		p := place{trace.NsysWarning, strings.TrimSpace(m.Text)}
		if m.Severity > 2 && !isAboutSamples(p.text) || losesWork(p.text) {
			p.message = trace.NsysError
		}
		if isUnused(p.text) {
			continue
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

// isUnused reports whether a message says that a process makes no calls to a library: nothing is
// missing then. Of CUDA it may be.
func isUnused(text string) bool {
	of, question := strings.CutPrefix(text, "No ")
	return question && strings.Contains(of, " events collected. Does the process use ") && !strings.HasPrefix(of, "CUDA ")
}

// isAboutSamples reports whether a message is about samples of threads, without which nothing that
// devices did is missing.
func isAboutSamples(text string) bool {
	return strings.Contains(text, "CPU IP/backtrace sample") || strings.Contains(text, "CPU kernel IP/backtrace sample")
}

// losesWork reports whether a message says that work of devices may be missing, however severe it is
// called.
func losesWork(text string) bool {
	return strings.Contains(text, "CUPTI events might be missing") || strings.Contains(text, "Not all CUDA events might have been collected")
}
