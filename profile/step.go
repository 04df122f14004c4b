package profile

import (
	"math"
	"strconv"
	"strings"
)

// stepModes are the forward modes that SGLang names in "step[MODE bs=...".
// What is not here is StepOther: MIXED (both), IDLE (a rank that only keeps the
// others company), DRAFT_EXTEND (a draft model after either).
var stepModes = map[string]StepKind{
	"EXTEND":        StepPrefill,
	"SPLIT_PREFILL": StepPrefill,
	"DECODE":        StepDecode,
	"TARGET_VERIFY": StepDecode, // decoding of several speculated tokens at once
}

const forward = "forward."

// runnerForwards are what vLLM's model runners call the part of a step that runs the model.
var runnerForwards = map[string]bool{"gpu_model_runner: forward": true, "v2_gpu_model_runner: forward": true}

// forwardModes are what SGLang's NVTX ranges call the same.
var forwardModes = map[string]StepKind{
	"prefill": StepPrefill, "extend": StepPrefill, "decode": StepDecode, "mixed": StepOther, "idle": StepOther,
}

// ParseStep tells what step an annotation of the given name is of, and how many
// requests are in its batch, -1 if it does not say. ok is false if it is no step.
// Known are
//
//	step[DECODE bs=32], step[EXTEND bs=15 toks=15360]      SGLang
//	scheduler.step 7 decode bs=32                          SGLang, NVTX
//	forward.decode                                         SGLang, NVTX; part of a step, see [IsPartOfStep]
//	execute_new_1_cached_32                                vLLM; 32 ran before
//	execute_context_1(888)_generation_0(0)                 vLLM
//	execute_8192_context_9(sq8155...)_generation_37(...)   vLLM; 8192 is tokens
//	gpu_model_runner: forward                              vLLM; part of a step
//	ProfilerStep#7                                         torch.profiler
func ParseStep(name string) (kind StepKind, batch int32, ok bool) {
	if rest, found := strings.CutPrefix(name, "step["); found {
		mode, rest, _ := strings.Cut(strings.TrimSuffix(rest, "]"), " ")
		return stepModes[mode], batchOf(rest), mode != ""
	}
	if rest, found := strings.CutPrefix(name, "scheduler.step "); found {
		number, rest, _ := strings.Cut(rest, " ")
		_, isNumber := count(number)
		mode, _, _ := strings.Cut(rest, " ")
		return forwardModes[mode], batchOf(rest), isNumber
	}
	if mode, found := strings.CutPrefix(name, forward); found {
		kind, ok = forwardModes[mode]
		return kind, -1, ok
	}
	if runnerForwards[name] {
		return StepOther, -1, true
	}
	if rest, found := strings.CutPrefix(name, "execute_new_"); found {
		return parseCached(rest)
	}
	if rest, found := strings.CutPrefix(name, "execute_"); found {
		tokens, rest, found := strings.Cut(rest, "context_")
		if _, isNumber := count(strings.TrimSuffix(tokens, "_")); !found || tokens != "" && !isNumber {
			return 0, -1, false
		}
		return parseExecute(rest)
	}
	if n, found := strings.CutPrefix(name, "ProfilerStep#"); found {
		_, isNumber := count(n)
		return StepOther, -1, isNumber
	}
	return 0, -1, false
}

// batchOf returns the number in "bs=32", -1 if there is none.
func batchOf(fields string) int32 {
	batch := int32(-1)
	for field := range strings.FieldsSeq(fields) {
		if n, found := strings.CutPrefix(field, "bs="); found {
			batch, _ = count(strings.TrimSuffix(n, "]"))
		}
	}
	return batch
}

// IsPartOfStep reports whether an annotation that [ParseStep] knows is of the part of
// a step that runs the model: where there are annotations of whole steps, those
// count.
func IsPartOfStep(name string) bool { return strings.HasPrefix(name, forward) || runnerForwards[name] }

// parseCached parses what follows "execute_new_" in a name of vLLM. Requests that ran
// before decode, but for those whose prompt is long and prefilled in chunks.
func parseCached(rest string) (kind StepKind, batch int32, ok bool) {
	first, rest, _ := strings.Cut(rest, "_cached_")
	prefills, ok1 := count(first)
	cached, ok2 := count(rest)
	if !ok1 || !ok2 {
		return 0, -1, false
	}
	return kindOf(prefills, cached), sum(prefills, cached), true
}

// kindOf returns the kind of a step with so many requests of each kind.
func kindOf(prefills, decodes int32) StepKind {
	switch {
	case decodes == 0 && prefills > 0:
		return StepPrefill
	case prefills == 0 && decodes > 0:
		return StepDecode
	}
	return StepOther
}

// sum adds numbers of requests.
func sum(prefills, decodes int32) int32 {
	return int32(min(int64(prefills)+int64(decodes), math.MaxInt32))
}

// parseExecute parses what follows "context_" in a name of vLLM.
func parseExecute(rest string) (kind StepKind, batch int32, ok bool) {
	contexts, rest, _ := strings.Cut(rest, "(")
	_, rest, _ = strings.Cut(rest, "generation_")
	generations, _, _ := strings.Cut(rest, "(")
	prefills, ok1 := count(contexts)
	decodes, ok2 := count(generations)
	if !ok1 || !ok2 {
		return 0, -1, false
	}
	return kindOf(prefills, decodes), sum(prefills, decodes), true
}

// count parses a number of things; without one it is -1.
func count(s string) (int32, bool) {
	n, err := strconv.ParseUint(s, 10, 31)
	if err != nil {
		return -1, false
	}
	return int32(n), true
}
