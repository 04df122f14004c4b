package serverlog

import (
	"bytes"

	"github.com/sgtrace/sgtrace/format/logline"
	"github.com/sgtrace/sgtrace/format/serverlog/errortext"
	"github.com/sgtrace/sgtrace/trace"
)

// ownFormat reads a line of SGLang in a deployment's own format of Python's logging: a local stamp without brackets, and
// then names, numbers, and levels in any order, "2025-12-04 20:35:53 INFO 1519 [metrics.py:287] Decode batch. ..",
// "2025-12-04 20:35:53,120 - sglang.srt - INFO - Decode batch. ..". Few name the rank,
// "[DP3 TP3 metrics.py:287]".
func (r *reader) ownFormat(b []byte) bool {
	i := localStampIn(b)
	if i < 0 {
		return false
	}
	stamp, ok := r.stamps.Read(b[i:])
	if !ok {
		return false
	}
	ns, n, grain := logline.Fraction(b[i+logline.DateTime:])
	behind := b[i+logline.DateTime+n:]
	rest := message(behind)
	head := behind[:len(behind)-len(rest)]
	if before := bytes.TrimRight(b[:i], " "); errortext.IsErrorLevel(before[max(0, len(before)-len("CRITICAL")):]) { // Ray's level, before the stamp
		head = before
	}
	known := bytes.HasPrefix(rest, decodeBatch) || bytes.HasPrefix(rest, prefillBatch) || errortext.IsTraceback(rest) || isOfVLLM(rest) || errortext.IsErrorLevel(head) || eventWords.First(rest[:min(len(rest), lookedAt)]) >= 0
	outer, _ := outside(b[:i])
	w := r.around.Unwrap(outer)
	switch {
	case known:
		at := r.place(stamp+ns, w, grain)
		r.process = r.wrapped(b[:i])
		r.leveled(rest, head, at, r.placeOf(ranked(head), w))
	case hasLevel(head):
		r.now = r.place(stamp+ns, w, grain)
		r.f.Saw(r.now)
		r.around.Learn(b[:len(b)-len(rest)-indent(head)])
	}
	return known
}

// isOfVLLM reports whether b is a line of vLLM's statistics.
func isOfVLLM(b []byte) bool {
	return bytes.HasPrefix(b, []byte("Avg prompt throughput: ")) || bytes.HasPrefix(b, []byte("Engine 0")) && bytes.Contains(b, []byte("Avg prompt throughput: "))
}

// ranked returns the part of a header in brackets that names a rank, or nil.
func ranked(head []byte) []byte {
	_, header, _ := bytes.Cut(head, []byte("["))
	header, _, ok := bytes.Cut(header, []byte("]"))
	if !ok || rankOf(header) == trace.NoRank {
		return nil
	}
	return header
}

// hasLevel reports whether the head of a line contains a level.
func hasLevel(head []byte) bool {
	return bytes.Contains(head, []byte("INFO")) || bytes.Contains(head, []byte("WARN")) || bytes.Contains(head, []byte("DEBUG")) || errortext.IsErrorLevel(head)
}

// indent returns how many blanks at the end of a head belong to the message: a head itself ends in one.
func indent(head []byte) int {
	return max(0, len(head)-len(bytes.TrimRight(head, " "))-1)
}

// localStampIn returns the start of the first stamp without a zone near the beginning of a line; -1 if there is none.
func localStampIn(b []byte) int {
	const looked = 200
	b = b[:min(len(b), looked)]
	var zoned logline.Stamper
	for from := 0; ; from++ {
		i := bytes.Index(b[from:], []byte("20"))
		if i < 0 {
			return -1
		}
		if from += i; !logline.IsStamp(b[from:]) {
			continue
		}
		if _, _, ok := zoned.Zoned(b[from:]); !ok {
			return from
		}
	}
}

// message strips everything between a stamp and a message: levels, numbers of processes and lines, and names of modules,
// with dashes, bars, or brackets.
func message(b []byte) []byte {
	const most, looked = 8, 200
	if _, said, ok := bytes.Cut(b[:min(len(b), looked)], []byte(" -- ")); ok { // Ray's
		return b[min(len(b), looked)-len(said):]
	}
	if i := behindSource(b[:min(len(b), looked)], ".py:", " - "); i > 0 { // Ray's, until 2.40
		return b[i:]
	}
	leveled := false
	for range most {
		before := len(b)
		b = bytes.TrimLeft(b, " \t-|:")
		dashed := before-len(b) > 1
		end := bytes.IndexAny(b, " \t")
		if len(b) > 0 && b[0] == '[' {
			end = bytes.IndexByte(b, ']') + 1
		}
		if end <= 0 {
			return b
		}
		named := dashed && !leveled && (bytes.HasPrefix(b[end:], []byte(" - ")) || bytes.HasPrefix(b[end:], []byte(" | "))) // a logger, such as "__main__"
		if !named && !isHead(bytes.Trim(b[:end], "[]:()")) && ranked(b[:end]) == nil {
			return b
		}
		leveled = leveled || hasLevel(b[:end])
		b = b[end:]
	}
	return b
}

// behindSource returns the start of a message after the file and the line that wrote it, such as "replica.py:359 - "; 0 if
// there is none.
func behindSource(b []byte, file, sign string) int {
	before, rest, ok := bytes.Cut(b, []byte(file))
	number, said, dashed := bytes.Cut(rest, []byte(sign))
	if _, isLine := logline.Digits(number, len(number)); !ok || !dashed || len(before) == 0 || len(number) == 0 || !isLine {
		return 0
	}
	return len(b) - len(said)
}

// isHead reports whether a word is a level, a number, or the name of a module, which has a dot and no other punctuation.
func isHead(word []byte) bool {
	if len(word) == 0 || logline.LevelOf(append(word[:len(word):len(word)], ' ')) != nil {
		return true
	}
	dots, letters := 0, 0
	for _, c := range word {
		switch {
		case c == '.' || c == ':':
			dots++
		case c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c == '_' || c == '<' || c == '>':
			letters++
		case c < '0' || c > '9':
			return false
		}
	}
	return letters == 0 || dots > 0 && word[len(word)-1] != '.'
}
