package naming

import (
	"strings"

	"github.com/sgtrace/sgtrace/internal/lazyregexp"
	"github.com/sgtrace/sgtrace/trace"
)

// A Name is the information in a file name. The zero Name is not the unknown one: an unknown Rank is
// [trace.NoRank].
type Name struct {
	// Rank has the parts in the name. Global is the number after the word "rank"; producers count it within
	// one torch.distributed world, so several replicas have the same number.
	Rank trace.Rank
	Host string
	// Run is equal in all files of one capture: SGLang's profile ID, or else the text before the rank; ""
	// if the name has neither.
	Run   string
	Stage string // "EXTEND", "DECODE", "prefill", "decode" as the producer writes it, or ""
	Time  int64  // Unix ns of the timestamp in the name; 0 is unknown
	PID   int64  // if the name has one; 0 is unknown
	// Part counts the windows of an interrupted capture from 1 (SGLang's ".part0"); 0 is a complete
	// capture.
	Part     int
	Role     string // "encoder" for SGLang's encoder server, whose ranks are its own
	Producer string // "sglang", "vllm", ...; "" if only words were recognized
	// NotRank is set for files that do not belong in a merge of ranks; What says why. Rank may still be
	// known if the file is about one rank, such as a memory snapshot.
	NotRank bool
	What    string
}

// ParseFile returns the information in the name of the file at path.
func ParseFile(path string) Name {
	stem, ext := split(path)
	if folder := ascendFolder.FindStringSubmatch(path); folder != nil {
		stem = folder[1]
	}
	for i := range forms {
		if n, ok := forms[i].match(stem, ext); ok {
			return n
		}
	}
	n := Name{Rank: rankWords(stem), Time: lastTime(stem)}
	if strings.HasSuffix(ext, ".pickle") || strings.HasSuffix(ext, ".pkl") {
		n.NotRank, n.What = true, memorySnapshot
	}
	return n
}

// ascendFolder finds the folder that Ascend's profiler names; the traces in it all have the same name.
var ascendFolder = lazyregexp.New(`([^/\\]+_ascend_pt)[/\\](?:ASCEND_PROFILER_OUTPUT[/\\])?trace_view\.json`)

var (
	compressed = [...]string{".gz", ".gzip", ".zst", ".zstd", ".lz4", ".xz", ".bz2", ".br"}
	extensions = [...]string{".json", ".jsonl", ".trace", ".pt", ".pickle", ".pkl", ".tmp", ".txt", ".pftrace", ".pb", ".sqlite", ".sqlite3"}
	// copied matches the suffix that browsers and file managers add to a second download.
	copied = lazyregexp.New(` ?\(\d{1,4}\)$`)
)

// IsCompressed reports whether a file has the extension of a compressed file.
func IsCompressed(path string) bool {
	_, _, ok := cutExt(path, compressed[:])
	return ok
}

// split strips directories and extensions from path. ext is in lowercase, without compression:
// ".pt.trace.json".
func split(path string) (stem, ext string) {
	stem = path[strings.LastIndexAny(path, `/\`)+1:]
	for {
		if m := copied.FindStringIndex(stem); m != nil && m[0] > 0 {
			stem = stem[:m[0]]
			continue
		}
		if rest, _, ok := cutExt(stem, compressed[:]); ok {
			stem = rest
			continue
		}
		rest, e, ok := cutExt(stem, extensions[:])
		if !ok {
			return stem, ext
		}
		stem, ext = rest, e+ext
	}
}

// cutExt cuts off the one of exts that s ends with, in any case.
func cutExt(s string, exts []string) (rest, ext string, ok bool) {
	for _, e := range exts {
		if len(s) > len(e) && strings.EqualFold(s[len(s)-len(e):], e) {
			return s[:len(s)-len(e)], e, true
		}
	}
	return s, "", false
}

// worker matches the title of a process that runs a model. SGLang omits the parts of size 1, and all parts
// with one GPU: "sglang::scheduler".
var worker = lazyregexp.New(`(?i)^(?:sglang::scheduler|vllm::worker|vllm::enginecore|worker)((?:[-_ ][a-z]+\d*)*)$`)

// parseProcess parses the titles that SGLang ("sglang::scheduler_DP1_TP0_EP0") and vLLM
// ("VLLM::Worker_TP1_EP1") give their processes; other names have no rank. "ATTN_CP0", "MOE_DP0", "PCP0",
// "DCP0", and "NP0" (the node) are parts that a [trace.Rank] does not have.
func parseProcess(name string) trace.Rank {
	r := trace.NoRank
	m := worker.FindStringSubmatch(strings.TrimSpace(name))
	if m == nil {
		return r
	}
	words := strings.FieldsFunc(strings.ToLower(m[1]), func(c rune) bool { return !alnum(byte(c)) })
	for i, w := range words {
		if i > 0 && (words[i-1] == "attn" || words[i-1] == "moe") {
			continue
		}
		if len(w) > 2 && isPart(w[:2]) && !setRank(&r, w[:2], w[2:]) {
			return trace.NoRank
		}
	}
	return r
}
