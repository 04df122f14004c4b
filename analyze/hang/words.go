package hang

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/sgtrace/sgtrace/analyze/words"
	"github.com/sgtrace/sgtrace/internal/order"
	"github.com/sgtrace/sgtrace/profile/recorder"
)

// ranges formats ranks briefly: "0 to 7, 9, 14". Beyond most ranges, it counts them; 0 is no limit.
func ranges(ranks []int32, most int, to string) string {
	var parts []string
	rest := 0
	for i := 0; i < len(ranks); {
		k := i + 1
		for k < len(ranks) && ranks[k] == ranks[k-1]+1 {
			k++
		}
		switch {
		case most > 0 && len(parts) == most:
			rest += k - i
		case k-i > 2:
			parts = append(parts, fmt.Sprintf("%d%s%d", ranks[i], to, ranks[k-1]))
		case k-i == 2:
			parts = append(parts, fmt.Sprint(ranks[i]), fmt.Sprint(ranks[i+1]))
		default:
			parts = append(parts, fmt.Sprint(ranks[i]))
		}
		i = k
	}
	text := strings.Join(parts, ", ")
	if rest > 0 {
		text += fmt.Sprintf(" and %d more", rest)
	}
	return text
}

// maxNamed is the most ranges of ranks that a sentence names.
const maxNamed = 6

// named returns "rank 9", or "ranks 9 and 14", for a sentence.
func named(ranks []int32) string {
	if len(ranks) == 1 {
		return fmt.Sprintf("rank %d", ranks[0])
	}
	text := ranges(ranks, maxNamed, " to ")
	if i := strings.LastIndex(text, ", "); i >= 0 && !strings.HasSuffix(text, " more") {
		text = text[:i] + " and" + text[i+1:]
	}
	return "ranks " + text
}

// counted returns "rank 9", "ranks 9 and 14", or "6 ranks" of many.
func counted(ranks []int32) string {
	if len(ranks) <= 2 {
		return named(ranks)
	}
	return words.Counted(len(ranks), "rank")
}

// call names a collective: "all_to_all #45,265 of EXPERT_MODEL_PARALLEL_GROUP (ranks 8 to 15)".
func (s *Stuck) call() string {
	if s.Seq < 0 {
		return fmt.Sprintf("%s of %s", s.Op, s.Group)
	}
	of := named(s.Of)
	if s.Unnamed > 0 {
		of += fmt.Sprintf(" and %d more", s.Unnamed)
	}
	return fmt.Sprintf("%s #%s of %s (%s)", s.Op, words.Thousands(s.Seq), s.Group, of)
}

// since returns " since 14:02:44", or "" if that is unknown.
func (s *Stuck) since() string {
	if s.Since == 0 {
		return ""
	}
	return " since " + words.At(s.Since, words.TenthLayout)
}

// wait says that ranks wait: "have waited", if it is known since when.
func (s *Stuck) wait() string {
	if s.Since == 0 {
		return verb(s.Waiting, "waits")
	}
	return hasOrHave(s.Waiting) + " waited"
}

// hasOrHave returns "has" or "have".
func hasOrHave(ranks []int32) string {
	if len(ranks) == 1 {
		return "has"
	}
	return "have"
}

// itOrThem returns "it" or "them".
func itOrThem(ranks []int32) string {
	if len(ranks) == 1 {
		return "it"
	}
	return "them"
}

// verb returns a verb for one rank, or for several: "waits", "wait".
func verb(ranks []int32, one string) string {
	if len(ranks) == 1 {
		return one
	}
	return strings.TrimSuffix(one, "s")
}

// sentence says what is wrong with a cause.
func (h *Hang) sentence(s *Stuck) string {
	text := h.describe(s)
	if n := len(s.HeldUp); n > len(s.Waiting)+len(s.Differ) {
		text += fmt.Sprintf("; %d of %d ranks wait on this", n, len(h.World))
	}
	return text + h.standsIn(s)
}

// standsIn says where the Python code of ranks that are not in a collective stands, if it is the same place for all.
func (h *Hang) standsIn(s *Stuck) string {
	missing := s.Absent
	if len(missing) == 0 {
		missing = s.Silent
	}
	switch {
	case s.Kind == Alone:
		missing = h.idle()
	case s.Kind != NotEntered && s.Kind != NoDump:
		return ""
	}
	if len(missing) == 0 {
		return ""
	}
	at := ""
	for i, r := range missing {
		d := h.python[r]
		if d == nil || d.Threads[0].Stack < 0 {
			return ""
		}
		place := h.place(d.Stacks[d.Threads[0].Stack])
		if i > 0 && place != at {
			return ""
		}
		at = place
	}
	return fmt.Sprintf("; Python of %s stands in %s", named(missing), at)
}

func (h *Hang) describe(s *Stuck) string {
	waiting := fmt.Sprintf("%s %s in it%s", counted(s.Waiting), s.wait(), s.since())
	switch s.Kind {
	case NotEntered:
		return fmt.Sprintf("%s did not enter %s; %s", named(s.Absent), s.call(), waiting)
	case OtherOp, OtherOrder, OtherSize, OtherType:
		return h.differs(s)
	case OtherSum:
		return fmt.Sprintf("what ranks send and receive in %s does not add up: %s elements in, %s out; %s", s.call(), words.Thousands(s.In), words.Thousands(s.Out), waiting)
	case Unmatched:
		return fmt.Sprintf("%s %s in %s%s, but %s has no counterpart in flight", named(s.Waiting), s.wait(), s.call(), s.since(), named(s.Absent))
	case Deadlock:
		return h.circle(s)
	case NoDump:
		if !slices.ContainsFunc(s.Silent, func(r int32) bool { return h.ranks[r].Dump == nil }) {
			return fmt.Sprintf("the log does not say whether %s entered %s, and %s", named(s.Silent), s.call(), waiting)
		}
		silent, them := named(s.Silent), itOrThem(s.Silent)
		if s.Unnamed > 0 { // of the group, whose size is known
			silent, them = fmt.Sprintf("%s and %d more", silent, s.Unnamed), "them"
		}
		return fmt.Sprintf("there is no record of %s, and %s %s for %s in %s%s", silent, counted(s.Waiting), s.wait(), them, s.call(), s.since())
	case Alone:
		others := "there is no record of other ranks of the group"
		if idle := h.idle(); len(idle) > 0 {
			others = fmt.Sprintf("of all ranks, only %s %s nothing that timed out", named(idle), verb(idle, "reports"))
		}
		return fmt.Sprintf("%s %s in %s%s; %s", named(s.Waiting), s.wait(), s.call(), s.since(), others)
	case AllEntered:
		if len(s.Ended) > 0 {
			return fmt.Sprintf("%s ended on %s and not on %s, where it runs%s", s.call(), counted(s.Ended), named(s.Waiting), s.since())
		}
		return fmt.Sprintf("all ranks entered %s and it does not end%s", s.call(), s.since())
	}
	return ""
}

// idle returns the ranks that have a dump and wait in nothing.
func (h *Hang) idle() (list []int32) {
	for _, r := range h.World {
		if x := h.ranks[r]; x.Dump != nil && x.Pending == 0 && x.Stuck < 0 {
			list = append(list, r)
		}
	}
	return list
}

// differs says which ranks entered what instead.
func (h *Hang) differs(s *Stuck) string {
	others := "the other " + words.Counted(len(s.Waiting), "rank")
	if s.Even || len(s.Waiting) == 1 {
		others = named(s.Waiting)
	}
	did := "entered"
	mine, theirs := h.text(s.Other.Name), s.Op
	if s.Seq < 0 {
		mine, theirs = mine+" "+h.text(s.Other.Out.Text), theirs+" "+s.Sizes
		return fmt.Sprintf("%s %s %s, but %s %s, in %s%s", named(s.Differ), did, mine, others, theirs, s.Group, s.since())
	}
	where := fmt.Sprintf("as collective #%s of %s (%s)%s", words.Thousands(s.Seq), s.Group, named(s.Of), s.since())
	switch s.Kind {
	case OtherSize:
		mine, theirs = mine+" "+h.sizes(s.Other, s), theirs+" "+s.Sizes
	case OtherType:
		mine, theirs = mine+" of "+h.text(s.Other.InT), theirs+" of "+s.Type
	case OtherOrder:
		return fmt.Sprintf("%s entered %s before %s, but %s the other way around, %s", named(s.Differ), mine, theirs, others, where)
	}
	return fmt.Sprintf("%s %s %s, but %s %s, %s", named(s.Differ), did, mine, others, theirs, where)
}

// sizes returns the sizes of inputs or, if these are equal, of outputs.
func (h *Hang) sizes(o *recorder.Op, s *Stuck) string {
	if in := h.text(o.In.Text); in != s.Sizes {
		return in
	}
	return "giving " + h.text(o.Out.Text)
}

// circle says which ranks wait for each other in a deadlock, and in what.
func (h *Hang) circle(s *Stuck) string {
	parts := []string{fmt.Sprintf("%s in %s", named(s.heads), s.call())}
	for _, k := range s.next {
		if o := &h.Stuck[k]; o.Kind == Deadlock && len(o.heads) > 0 {
			parts = append(parts, fmt.Sprintf("%s in %s", named(o.heads), o.call()))
		}
	}
	return "ranks wait for each other" + s.since() + ": " + strings.Join(parts, ", ")
}

// frame formats a function, with its file and line.
func (h *Hang) frame(f recorder.Frame) string {
	file := h.text(f.File)
	if i := strings.LastIndexByte(file, '/'); i >= 0 {
		file = file[i+1:]
	}
	if file == "" {
		return h.text(f.Name)
	}
	if f.Line == 0 {
		return fmt.Sprintf("%s (%s)", h.text(f.Name), file)
	}
	return fmt.Sprintf("%s (%s:%s)", h.text(f.Name), file, strconv.Itoa(int(f.Line)))
}

// place returns the first function on a stack that is neither PyTorch's own nor of a library, or else
// the innermost one; "" if the stack is empty.
func (h *Hang) place(stack []recorder.Frame) string {
	for _, f := range stack {
		if file := h.text(f.File); !strings.Contains(file, "torch/") && file != "" && !strings.Contains(file, ".so") {
			return h.frame(f)
		}
	}
	if len(stack) > 0 {
		return h.frame(stack[0])
	}
	return ""
}

// whole returns a stack in one line, innermost first.
func (h *Hang) whole(stack []recorder.Frame) string {
	parts := order.Each(stack, h.frame)
	return strings.Join(parts, " < ")
}

// Words says in one line how many ranks have dumps, and how many of them wait.
func (h *Hang) Words() string {
	waiting := order.Count(h.Ranks, func(r Rank) bool { return r.Pending > 0 })
	unnamed := h.unnamed()
	var parts []string
	if n := len(h.World) - len(h.Silent); n > 0 {
		what := "dumps or logs"
		if h.by == recorder.NCCL {
			what = "NCCL's log"
		}
		text := fmt.Sprintf("%s of %d of %s", what, n, words.Counted(len(h.World), "rank"))
		switch {
		case waiting > 0:
			text += fmt.Sprintf(", %d of which wait", waiting)
		case h.by == recorder.NCCL:
			text += ", which entered the same collectives"
		case unnamed > 0:
			text += "; nothing tells which collectives are in flight in " + words.Counted(unnamed, "rank")
		default:
			text += ", none of which has anything in flight"
		}
		parts = append(parts, text)
	}
	if n := h.looked(); n > 0 {
		text := words.Counted(n, "py-spy dump")
		if len(parts) == 0 {
			text += ": 'sgtrace report --hang' shows where threads stand"
		}
		parts = append(parts, text)
	}
	if text := h.severalJobs(); text != "" {
		parts = append(parts, text)
	}
	return strings.Join(parts, "; ")
}

// unnamed returns how many ranks count collectives that have not ended, without saying which.
func (h *Hang) unnamed() (n int) {
	return order.Count(h.Ranks, func(r Rank) bool { return r.Unnamed > 0 })
}

// severalJobs says that there are dumps of several jobs; "" if there are not.
func (h *Hang) severalJobs() string {
	switch {
	case h.mixed:
		return "several dumps have one rank, and nothing tells their jobs apart: the last one of each rank counts"
	case len(h.others) == 0:
		return ""
	}
	left, names := 0, []string{}
	for _, j := range h.others {
		left += len(j.dumps)
		names = append(names, j.name())
	}
	return fmt.Sprintf("ranks of equal numbers are of %d jobs, or hangs: this is the last one, and %s of the others are left out (%s); give them alone", len(h.others)+1, words.Counted(left, "dump"), words.Some(names, 3))
}

// looked returns how many processes py-spy looked at.
func (h *Hang) looked() (n int) {
	return order.Count(h.Set.Dumps, func(d *recorder.FlightDump) bool { return d.By == recorder.PySpy })
}
