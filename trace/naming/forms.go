package naming

import (
	"strconv"
	"strings"

	"github.com/sgtrace/sgtrace/internal/lazyregexp"
	"github.com/sgtrace/sgtrace/trace"
)

// A form is one way in which a producer names its files. The named groups of re say what the parts of the
// name are:
//
//	tp dp pp ep rank   numbers; an out-of-range one fails the form
//	ranks              several, like -TP-0-DP-1
//	host pid stage part time
//	run                Run; a profile ID at its end becomes Run and Time
type form struct {
	producer string
	// ext is the required end of the extension, without compression.
	ext  string
	what string // why a file of this form is not a rank's trace
	role string
	re   *lazyregexp.Regexp
}

const (
	memorySnapshot = "memory snapshot"
	// GraphCapture is the [Name.What] of a worker's trace from before it serves.
	GraphCapture = "trace of CUDA graph capture at start"

	stamp   = `\d{13}|\d{16}|\d{19}` // ms, µs, ns
	seconds = `\d{10}(?:\.\d{1,9})?` // time.time()

	scheduler = `(?P<ranks>(?:TP|DP|PP|EP)-\d+(?:-(?:TP|DP|PP|EP)-\d+)*)` +
		`(?:-(?P<stage>EXTEND|DECODE|prefill))?(?:\.part(?P<part>\d{1,5}))?`
)

// pattern is compiled on first use: all patterns together would be a tenth of the program's allocations at
// startup.
func pattern(s string) *lazyregexp.Regexp {
	return lazyregexp.New(`(?is)^` + s + `$`)
}

// forms is searched from the top; the first match wins.
var forms = []form{
	// The unambiguous forms: no other name looks like these. Every rank of the node records into one
	// trace.rpd; TP 0 converts it.
	{producer: "rpd", what: "RPD trace of all ranks of a node", re: pattern(`rpd-(?P<run>` + seconds + `)-TP-\d+`)},
	// SGLang's scheduler, [prefix-]{profile_id}-TP-..., without parts of size 1. ".part0" are windows of an
	// interrupted stage.
	{producer: "sglang", re: pattern(`(?P<run>(?:.*?[-_])??` + seconds + `)-` + scheduler)},
	// vLLM >= 0.17, get_worker_rank_suffix; the prefix is profile_prefix.
	{producer: "vllm",
		re: pattern(`(?:(?P<run>.+?)_)??dp(?P<dp>\d+)_pp(?P<pp>\d+)(?:_pcp\d+)?_tp(?P<tp>\d+)(?:_dcp\d+)?_ep(?P<ep>\d+)(?:_rank(?P<rank>\d+))?(?:\.(?P<time>` + stamp + `))?`)},

	// Files beside the ranks' traces. SGLang's profile_merger.py.
	{producer: "sglang", what: "ranks merged into one file already", re: pattern(`merged(?:[-_.](?P<run>.+))?`)},
	// SGLang's scheduler_profiler_mixin.py, activity MEM; the stage follows.
	{producer: "sglang", ext: ".pickle", what: memorySnapshot,
		re: pattern(`(?P<run>(?:.+?-)??` + seconds + `)-TP-(?P<tp>\d+)-memory(?:-(?P<stage>EXTEND|DECODE|prefill))?`)},
	// SGLang's --enable-profile-cuda-graph: one file per rank, or one per batch size and rank.
	{producer: "sglang", what: GraphCapture, re: pattern(`cuda_graph_capture-(?P<run>.+)-TP-(?P<tp>\d+)`)},
	{producer: "sglang", what: GraphCapture, re: pattern(`(?:(?P<run>.+)_)?bs_\d+_rank(?P<rank>\d+)`)},
	// vLLM writes the rank within the node, which is not a rank of the deployment.
	{producer: "vllm", what: GraphCapture, re: pattern(`(?P<run>graph_capture)(?:_rank_?\d+(?:_\w+)?)?(?:\.(?P<time>` + stamp + `))?`)},
	// vLLM's API server; CPU only.
	{producer: "vllm", what: "vLLM's front end (async_llm)",
		re: pattern(`(?P<host>[a-z0-9.-]+)_(?P<pid>\d{1,10})\.async_llm(?:\.(?P<time>` + stamp + `))?`)},
	{producer: "vllm", what: "vLLM's front end (async_llm)", re: pattern(`(?:.*[^a-z0-9])?async_llm(?:[^a-z0-9].*?)??(?:\.(?P<time>` + stamp + `))?`)},

	// SGLang's scheduler without its profile ID: renamed files.
	{producer: "sglang", re: pattern(`(?:(?P<run>.*?)[-_])??` + scheduler)},
	// SGLang's encoder server (prefix "encoder" unless given).
	{producer: "sglang", ext: ".trace.json", role: "encoder",
		re: pattern(`.+-rank(?P<rank>\d+)-(?P<run>` + seconds + `)`)},
	// SGLang's bench_one_batch, which names no rank.
	{producer: "sglang", re: pattern(`(?P<run>.+_batch\d+_input\d+_output\d+)(?:_(?P<stage>prefill|decode))?`)},
	// SGLang's diffusion server.
	{producer: "sglang", ext: ".trace.json", re: pattern(`(?P<run>[^.]+(?:\.\d+)?)-rank-(?P<rank>\d+)`)},

	// vLLM <= 0.16, {instance_id}-rank-{rank}.
	{producer: "vllm", ext: ".pt.trace.json", re: pattern(`(?P<run>.+)-rank-(?P<rank>\d+)\.(?P<time>` + stamp + `)`)},

	// Primus, as worker name of the tensorboard handler.
	{producer: "primus", re: pattern(`(?P<run>primus-.+)-rank\[(?P<rank>\d+)\](?:\.(?P<time>` + stamp + `))?`)},
	// torchtune, in iteration_N/: the worker name of the tensorboard handler is rank and minute.
	{producer: "torchtune", ext: ".pt.trace.json",
		re: pattern(`r(?P<rank>\d+)-\d{4}(?:-\d{1,2}){4}(?:\.(?P<time>` + stamp + `))?`)},
	// torchtitan, in iteration_N/.
	{producer: "torchtitan", re: pattern(`rank(?P<rank>\d+)_trace`)},
	// HTA's samples; the date has no year and so gives no time.
	{producer: "hta", re: pattern(`(?:sampled_)?rank[-_](?P<rank>\d+)\.[a-z]{3}_\d{2}_\d{2}_\d{2}_\d{2}(?:\.\d+)?`)},
	// TensorRT-LLM since 2026-04; earlier, all ranks wrote to one file.
	{producer: "trtllm", ext: ".json", re: pattern(`(?P<run>.+)-rank-(?P<rank>\d+)`)},

	// torch.profiler's tensorboard_trace_handler: worker.{ms, since 2023 ns}.
	// A worker is {host}_{pid} unless the user names it; "worker3" is common.
	{producer: "tensorboard", ext: ".pt.trace.json", re: pattern(`worker[-_]?(?P<rank>\d+)\.(?P<time>` + stamp + `)`)},
	{producer: "tensorboard", ext: ".pt.trace.json",
		re: pattern(`(?P<host>[a-z0-9.-]+)_(?P<pid>\d{1,10})(?:_epoch\d+)?\.(?P<time>` + stamp + `)`)},
	// Ascend's profiler names a folder: {worker}_{UTC in ms}_ascend_pt, where a worker is {host}_{pid} unless the
	// user names it.
	{producer: "ascend", re: pattern(`(?:(?P<run>.+?)[-_.])?rank[-_]?(?P<rank>\d+)(?:_\d{14,17})?_ascend_pt`)},
	{producer: "ascend", re: pattern(`(?P<host>[a-z0-9.-]+)_(?P<pid>\d{1,10})_\d{14,17}_ascend_pt`)},
	// Kineto on demand, without a given name.
	{producer: "kineto", re: pattern(`libkineto_activities_(?P<pid>\d{1,10})`)},
}

// match parses a name of this form; stem and ext come from [split].
func (f *form) match(stem, ext string) (Name, bool) {
	if !strings.HasSuffix(ext, f.ext) || f.producer == "trtllm" && ext != f.ext {
		return Name{}, false
	}
	m := f.re.FindStringSubmatch(stem)
	if m == nil {
		return Name{}, false
	}
	n := Name{Rank: trace.NoRank, Producer: f.producer, Role: f.role, NotRank: f.what != "", What: f.what}
	for i, group := range f.re.Compiled().SubexpNames() {
		if group != "" && m[i] != "" && !n.set(group, m[i]) {
			return Name{}, false
		}
	}
	if word := lastWord(n.Run); n.Rank.Global >= 0 && n.Rank.TP < 0 && (otherRank[word] || isPart(word)) {
		return Name{}, false // "lora-rank-16" is not a process, "tp-rank-3" not a global rank
	}
	return n, true
}

// set sets the field of a form's group from its text; false if the text is invalid.
func (n *Name) set(group, text string) bool {
	switch group {
	case "tp", "dp", "pp", "ep", "rank":
		return setRank(&n.Rank, group, text)
	case "ranks":
		words := strings.Split(text, "-")
		for i := 0; i+1 < len(words); i += 2 {
			if !setRank(&n.Rank, strings.ToLower(words[i]), words[i+1]) {
				return false
			}
		}
	case "host":
		n.Host = text
		return !notHost[lastWord(text)]
	case "pid":
		n.PID, _ = strconv.ParseInt(text, 10, 64)
	case "stage":
		n.Stage = stage(text)
	case "part":
		k, _ := strconv.Atoi(text)
		n.Part = k + 1
	case "time":
		n.Time = parseTime(text)
	case "run":
		n.Run = text
		if m := profileID.FindStringSubmatch(text); m != nil && parseTime(m[1]) != 0 {
			n.Run, n.Time = m[1], parseTime(m[1])
		}
	}
	return true
}

var profileID = lazyregexp.New(`(?:^|[-_.])(` + seconds + `)$`)

// notHost are words before a number in names of workers: such a word is not a host, and the number is not a
// pid.
var notHost = map[string]bool{"rank": true, "worker": true, "tp": true, "pp": true, "dp": true, "ep": true,
	"epoch": true, "step": true, "iter": true, "iteration": true, "gpu": true, "device": true, "node": true,
	"trace": true, "profile": true, "run": true}

// stage returns a stage as its producer spells it, whatever its case in the name.
func stage(text string) string {
	switch {
	case strings.EqualFold(text, "extend"):
		return "EXTEND"
	case strings.EqualFold(text, "prefill"):
		return "prefill"
	case text == "decode":
		return "decode"
	}
	return "DECODE"
}

// parseTime parses Unix seconds (with an optional fraction), ms, µs, or ns, distinguished by the number of
// digits, and returns ns. 0 is invalid, or outside of 2001 to 2096.
func parseTime(s string) int64 {
	whole, frac, _ := strings.Cut(s, ".")
	if len(whole) == 10 {
		whole += (frac + "000000000")[:9]
	}
	for len(whole) < 19 {
		whole += "000"
	}
	ns, err := strconv.ParseInt(whole, 10, 64)
	if err != nil || ns < 1e18 || ns >= 4e18 {
		return 0
	}
	return ns
}
