package naming

import (
	"fmt"
	"strings"

	"github.com/sgtrace/sgtrace/internal/lazyregexp"
	"github.com/sgtrace/sgtrace/trace"
)

// fields returns the parts of r; -1 is unknown.
func fields(r *trace.Rank) [5]int32 {
	return [5]int32{int32(r.DP), int32(r.PP), int32(r.TP), int32(r.EP), r.Global}
}

// compare returns the number of parts known in both a and b, and reports whether any of them differs.
func compare(a, b trace.Rank) (shared int, differ bool) {
	x, y := fields(&a), fields(&b)
	for i := range x {
		if x[i] >= 0 && y[i] >= 0 {
			shared++
			differ = differ || x[i] != y[i]
		}
	}
	return shared, differ
}

// text formats r for messages. Unlike String, it includes both TP3 and rank 3.
func text(r trace.Rank) string {
	g := trace.NoRank
	g.Global, r.Global = r.Global, -1
	switch {
	case r == trace.NoRank:
		return g.String()
	case g == trace.NoRank:
		return r.String()
	}
	return r.String() + " (" + g.String() + ")"
}

// inWorld reports whether a process with the parts r can be rank global in a torch.distributed world of the
// given size (0 is unknown). The two are different concepts:
//   - A DP replica may have its own world, in which ranks start at 0
//     again, or share one, in which they are shifted by its number.
//   - SGLang's DP attention divides the TP ranks, so TP alone decides;
//     with PP, the rank is PP * TP size + TP.
//   - EP is ignored.
//
// shifted says that r.Global may be the rank inside a replica although r does
// not know the DP rank: vLLM before 0.17.
func inWorld(r trace.Rank, global, size int32, shifted bool) bool {
	switch {
	case size == 1: // alone in its world: says nothing
		return true
	case r.Global >= 0:
		return r.Global == global || r.DP > 0 && shift(global, r.Global, int32(r.DP), size) ||
			shifted && r.DP < 0 && anyShift(global, r.Global, size)
	case r.TP >= 0 && r.PP > 0:
		return shift(global, int32(r.TP), int32(r.PP), size)
	case r.TP >= 0:
		return int32(r.TP) == global
	}
	return true
}

// shift reports whether global = inner + outer * n for blocks of n > inner ranks that divide the world.
func shift(global, inner, outer, size int32) bool {
	d := global - inner
	return d > 0 && d%outer == 0 && d/outer > inner && (size <= 0 || size%(d/outer) == 0)
}

// anyShift is shift for some outer > 0.
func anyShift(global, inner, size int32) bool {
	const most = 1 << 20 // no world is that large; a damaged header may claim it
	for n := inner + 1; n <= min(global-inner, size-1, most); n++ {
		if size%n == 0 && (global-inner)%n == 0 {
			return true
		}
	}
	return false
}

// SplitLabel splits "label=path" at its first "=". All of arg is the path, without a label, if
//   - exists reports that arg is the name of a file ("lr=3.json"); exists may be nil,
//   - the text before or after the "=" is empty,
//   - the text before it is a path: it contains "/" or "\" and is not of the
//     form host/rank, with a rank that [ParseLabel] accepts ("node1/TP3").
func SplitLabel(arg string, exists func(path string) bool) (label, path string) {
	label, path, ok := strings.Cut(arg, "=")
	if !ok || label == "" || path == "" || exists != nil && exists(arg) {
		return "", arg
	}
	if strings.ContainsAny(label, `/\`) {
		host, rank, _ := strings.Cut(label, "/")
		if _, isRank, err := labelRank(rank); host == "" || !isRank || err != nil {
			return "", arg
		}
	}
	return label, path
}

// ParseLabel parses the label of "label=path": a host ("node1"), a rank ("TP3", "TP3-DP0", "TP-3", "rank
// 7", "rank7", "7"), or host/rank ("node1/TP3-DP0"). A host that looks like a rank can be given only as
// "7/TP0".
func ParseLabel(label string) (host string, rank trace.Rank, err error) {
	label = strings.TrimSpace(label)
	host, text, both := strings.Cut(label, "/")
	if !both {
		host, text = "", label
	}
	host, text = strings.TrimSpace(host), strings.TrimSpace(text)
	rank, isRank, err := labelRank(text)
	switch {
	case err != nil:
		return "", trace.NoRank, fmt.Errorf("label %q: %w", label, err)
	case text == "" || both && (host == "" || !isRank):
		return "", trace.NoRank, fmt.Errorf(`label %q: want a host, a rank such as TP3-DP0 or "rank 7", or host/rank`, label)
	case !isRank:
		return text, trace.NoRank, nil
	}
	return host, rank, nil
}

var (
	partsLabel  = lazyregexp.New(`(?i)^(?:tp|pp|dp|ep)-?\d+(?:[-_, ](?:tp|pp|dp|ep)-?\d+)*$`)
	onePart     = lazyregexp.New(`(?i)(tp|pp|dp|ep)-?(\d+)`)
	globalLabel = lazyregexp.New(`(?i)^(?:rank[-_= ]?)?(\d+)$`)
)

// labelRank parses a rank; isRank is false if text does not look like one.
func labelRank(text string) (r trace.Rank, isRank bool, err error) {
	r = trace.NoRank
	if m := globalLabel.FindStringSubmatch(text); m != nil {
		if !setRank(&r, "rank", m[1]) {
			return trace.NoRank, true, fmt.Errorf("rank %s is out of range", m[1])
		}
		return r, true, nil
	}
	if !partsLabel.MatchString(text) {
		return r, false, nil
	}
	seen := map[string]bool{}
	for _, m := range onePart.FindAllStringSubmatch(text, -1) {
		name := strings.ToLower(m[1])
		if seen[name] || !setRank(&r, name, m[2]) {
			return trace.NoRank, true, fmt.Errorf("rank %s is out of range or given twice", m[0])
		}
		seen[name] = true
	}
	return r, true, nil
}
