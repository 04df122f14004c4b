package naming

import (
	"fmt"
	"regexp"
	"strings"

	"github.com/sgtrace/sgtrace/trace"
)

// SplitLabel splits "label=path" at its first "=". There is no label, and all
// of arg is the path, when
//   - exists says that arg is the name of a file ("lr=3.json"); nil is none,
//   - nothing stands before or after the "=",
//   - what stands before it is a path: it has a "/" or "\" and is not of the
//     form host/rank, with a rank that [ParseLabel] reads ("node1/TP3").
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

// ParseLabel reads the label of "label=path": a host ("node1"), a rank ("TP3",
// "TP3-DP0", "TP-3", "rank 7", "rank7", "7") or host/rank ("node1/TP3-DP0").
// A host that reads like a rank can be given as "7/TP0" only.
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
	partsLabel  = regexp.MustCompile(`(?i)^(?:tp|pp|dp|ep)-?\d+(?:[-_, ](?:tp|pp|dp|ep)-?\d+)*$`)
	onePart     = regexp.MustCompile(`(?i)(tp|pp|dp|ep)-?(\d+)`)
	globalLabel = regexp.MustCompile(`(?i)^(?:rank[-_= ]?)?(\d+)$`)
)

// labelRank reads a rank; isRank is false when text does not look like one.
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
