package profile

import (
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/sgtrace/sgtrace/trace"
)

// stepModes are the forward modes that SGLang names in "step[MODE bs=...". Missing modes are StepOther: MIXED
// (both), IDLE (a rank that only keeps the others company), DRAFT_EXTEND (a draft model after either).
var stepModes = map[string]StepKind{
	"EXTEND":        StepPrefill,
	"SPLIT_PREFILL": StepPrefill,
	"DECODE":        StepDecode,
	"TARGET_VERIFY": StepDecode, // decoding of several speculated tokens at once
}

const forward = "forward."

// runnerForwards are the names in vLLM's model runners of the part of a step that runs the model.
var runnerForwards = map[string]bool{"gpu_model_runner: forward": true, "v2_gpu_model_runner: forward": true}

// forwardModes are the names of the same part in SGLang's NVTX ranges.
var forwardModes = map[string]StepKind{
	"prefill": StepPrefill, "extend": StepPrefill, "decode": StepDecode, "mixed": StepOther, "idle": StepOther,
}

// A StepName is the information in the name of a step.
type StepName struct {
	Kind  StepKind
	Batch int32 // requests; -1 is unknown
	// Prefilled and Decoded are the numbers of tokens that the model computes for requests that are prefilled, and
	// for those that decode; -1 is unknown. They exclude tokens from a prefix cache, and include speculated tokens,
	// whether or not they are accepted.
	Prefilled, Decoded int32
	Lengths            *Lengths // of its sequences; nil is unknown
}

// unknownStep is a name without information.
var unknownStep = StepName{Batch: -1, Prefilled: -1, Decoded: -1}

// Tokens returns the number of tokens that the step computes; ok is false if the name does not have it.
func (n *StepName) Tokens() (tokens int64, ok bool) {
	return int64(n.Prefilled) + int64(n.Decoded), n.Prefilled >= 0 && n.Decoded >= 0
}

// ParseStep parses the name of an annotation. ok is false if it is not a step. The known forms are
//
//	step[DECODE bs=32], step[EXTEND bs=15 toks=15360]      SGLang; of other modes, no tokens
//	scheduler.step 7 decode bs=32                          SGLang, NVTX
//	forward.decode                                         SGLang, NVTX; part of a step, see [IsPartOfStep]
//	execute_new_1_cached_32                                vLLM; 32 ran before
//	execute_context_1(888_788544)_generation_0(0)          vLLM; 888 tokens, and the sum of their squares
//	execute_8192_context_9(sq8155...)_generation_37(sq37)  vLLM; 8192 is tokens: 8155 and 37
//	gpu_model_runner: forward                              vLLM; part of a step
//	ProfilerStep#7                                         torch.profiler
func ParseStep(name string) (step StepName, ok bool) {
	if step, ok = parseStep(name); ok {
		step.Lengths = parseLengths(name)
	}
	return step, ok
}

func parseStep(name string) (step StepName, ok bool) {
	step = unknownStep
	if rest, found := strings.CutPrefix(name, "step["); found {
		mode, rest, _ := strings.Cut(strings.TrimSuffix(rest, "]"), " ")
		step.parseFields(rest)
		step.setMode(mode, stepModes[mode])
		return step, mode != ""
	}
	if rest, found := strings.CutPrefix(name, "scheduler.step "); found {
		number, rest, _ := strings.Cut(rest, " ")
		_, isNumber := count(number)
		mode, rest, _ := strings.Cut(rest, " ")
		step.parseFields(rest)
		step.setMode(mode, forwardModes[mode])
		return step, isNumber
	}
	if mode, found := strings.CutPrefix(name, forward); found {
		step.Kind, ok = forwardModes[mode]
		return step, ok
	}
	if runnerForwards[name] {
		return step, true
	}
	if rest, found := strings.CutPrefix(name, "execute_new_"); found {
		ok = step.parseCached(rest)
		return step, ok
	}
	if rest, found := strings.CutPrefix(name, "execute_"); found {
		tokens, rest, found := strings.Cut(rest, "context_")
		if _, isNumber := count(strings.TrimSuffix(tokens, "_")); !found || tokens != "" && !isNumber {
			return step, false
		}
		ok = step.parseExecute(rest)
		return step, ok
	}
	if n, found := strings.CutPrefix(name, "ProfilerStep#"); found {
		_, ok = count(n)
		return step, ok
	}
	return step, false
}

// parseFields parses "bs=15 toks=15360"; toks are prefilled tokens.
func (n *StepName) parseFields(fields string) {
	for field := range strings.FieldsSeq(fields) {
		key, value, _ := strings.Cut(strings.TrimSuffix(field, "]"), "=")
		switch key {
		case "bs":
			n.Batch, _ = count(value)
		case "toks":
			n.Prefilled, _ = count(value)
		}
	}
}

// setMode sets the kind for a mode of SGLang. DECODE computes one token per request; modes with speculated
// tokens, or with both kinds, do not tell the number.
func (n *StepName) setMode(mode string, kind StepKind) {
	n.Kind = kind
	switch {
	case strings.EqualFold(mode, "decode"):
		n.Prefilled, n.Decoded = 0, n.Batch
	case kind == StepPrefill:
		n.Decoded = 0
	default:
		n.Prefilled = -1
	}
}

// IsPartOfStep reports whether an annotation that [ParseStep] accepts is the part of a step that runs the
// model: if there are annotations of whole steps, those count.
func IsPartOfStep(name string) bool { return strings.HasPrefix(name, forward) || runnerForwards[name] }

// WholeSteps drops parts of steps where servers annotated whole steps.
func WholeSteps(steps []Step, syms *trace.Symbols) []Step {
	isPart := func(s Step) bool { return IsPartOfStep(syms.Name(s.Name)) }
	isWhole := func(s Step) bool { return !isPart(s) && (s.Kind != StepOther || s.Batch >= 0) }
	if !slices.ContainsFunc(steps, isWhole) {
		return steps
	}
	return slices.DeleteFunc(steps, isPart)
}

// parseCached parses what follows "execute_new_" in a name of vLLM. Requests that ran before decode, except
// those with a long prompt that is prefilled in chunks: so the number of tokens is unknown.
func (n *StepName) parseCached(rest string) bool {
	first, rest, _ := strings.Cut(rest, "_cached_")
	prefills, ok1 := count(first)
	cached, ok2 := count(rest)
	if !ok1 || !ok2 {
		return false
	}
	n.setRequests(prefills, cached)
	return true
}

// setRequests sets the kind and the batch of a step with the given numbers of requests.
func (n *StepName) setRequests(prefills, decodes int32) {
	switch {
	case decodes == 0 && prefills > 0:
		n.Kind = StepPrefill
	case prefills == 0 && decodes > 0:
		n.Kind = StepDecode
	}
	n.Batch = int32(min(int64(prefills)+int64(decodes), math.MaxInt32))
}

// parseExecute parses what follows "context_" in a name of vLLM.
func (n *StepName) parseExecute(rest string) bool {
	contexts, rest, _ := strings.Cut(rest, "(")
	context, rest, _ := strings.Cut(rest, ")")
	_, rest, _ = strings.Cut(rest, "generation_")
	generations, generation, _ := strings.Cut(rest, "(")
	prefills, ok1 := count(contexts)
	decodes, ok2 := count(generations)
	if !ok1 || !ok2 {
		return false
	}
	n.setRequests(prefills, decodes)
	n.Prefilled, n.Decoded = queries(context), queries(generation)
	return true
}

// queries returns the number of tokens from vLLM's text in parentheses about the requests of one kind, which
// begins with it: "888_788544" or "sq8155sk8430"; -1 if there is none.
func queries(s string) int32 {
	s = strings.TrimPrefix(s, "sq")
	if end := strings.IndexFunc(s, func(r rune) bool { return r < '0' || r > '9' }); end >= 0 {
		s = s[:end]
	}
	n, _ := count(s)
	return n
}

// count parses a number; -1 if there is none.
func count(s string) (int32, bool) {
	n, err := strconv.ParseUint(s, 10, 31)
	if err != nil {
		return -1, false
	}
	return int32(n), true
}
