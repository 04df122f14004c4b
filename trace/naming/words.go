package naming

import (
	"strconv"
	"strings"

	"github.com/sgtrace/sgtrace/internal/lazyregexp"
	"github.com/sgtrace/sgtrace/trace"
)

// setRank sets one part of r; false if the number cannot be a rank.
func setRank(r *trace.Rank, part, digits string) bool {
	bits := 16
	if part == "rank" {
		bits = 32
	}
	k, err := strconv.ParseInt(digits, 10, bits)
	if err != nil || k < 0 {
		return false
	}
	switch part {
	case "tp":
		r.TP = int16(k)
	case "pp":
		r.PP = int16(k)
	case "dp":
		r.DP = int16(k)
	case "ep":
		r.EP = int16(k)
	default:
		r.Global = int32(k)
	}
	return true
}

var (
	rankWord = lazyregexp.New(`(?i)rank[-_= ]?\[?(\d{1,9})`)
	// sizeOrRank matches a name that begins with parts. Elsewhere in a name, "tp8" is more often the size
	// of a deployment than a rank: "llama-tp8.json".
	sizeOrRank = lazyregexp.New(`(?i)^(?:(?:trace|profile|sampled)[-_])?((?:[-_]?(?:tp|pp|dp|ep)\d{1,5})+)(?:[^a-z0-9]|$)`)
	part       = lazyregexp.New(`(?i)(tp|pp|dp|ep)(\d+)`)
	timeWord   = lazyregexp.New(`(?:^|[^0-9A-Za-z])(\d{19}|\d{16}|\d{13}|\d{10}(?:\.\d{1,9})?)(?:[^0-9A-Za-z]|$)`)
)

// otherRank are words before "rank" that make it something other than a position in the deployment.
var otherRank = map[string]bool{"local": true, "node": true, "group": true, "machine": true, "role": true,
	"replica": true, "low": true, "lora": true, "cp": true, "pcp": true, "dcp": true, "sp": true, "moe": true, "attn": true}

// rankWords searches a name of unknown form: the last "rank3", "rank_3", "rank-3", "rank[3]", or
// "tp_rank_3", otherwise "tp3" at its start. In a name with both "tp8" and "rank3", these are the size and
// the rank.
func rankWords(stem string) trace.Rank {
	r := trace.NoRank
	for _, m := range rankWord.FindAllStringSubmatchIndex(stem, -1) {
		if m[0] > 0 && alnum(stem[m[0]-1]) || m[1] < len(stem) && alnum(stem[m[1]]) {
			continue
		}
		word := lastWord(stem[:m[0]])
		switch {
		case otherRank[word]:
		case isPart(word):
			setRank(&r, word, stem[m[2]:m[3]])
		default:
			setRank(&r, "rank", stem[m[2]:m[3]])
		}
	}
	if r != trace.NoRank {
		return r
	}
	m := sizeOrRank.FindStringSubmatch(stem)
	if m == nil {
		return r
	}
	for _, p := range part.FindAllStringSubmatch(m[1], -1) {
		if !setRank(&r, strings.ToLower(p[1]), p[2]) {
			return trace.NoRank
		}
	}
	return r
}

func isPart(word string) bool {
	return word == "tp" || word == "pp" || word == "dp" || word == "ep"
}

// lastWord returns the last run of letters and digits in s, in lowercase.
func lastWord(s string) string {
	end := len(s)
	for end > 0 && !alnum(s[end-1]) {
		end--
	}
	start := end
	for start > 0 && alnum(s[start-1]) {
		start--
	}
	return strings.ToLower(s[start:end])
}

func alnum(c byte) bool {
	return '0' <= c && c <= '9' || 'a' <= c|0x20 && c|0x20 <= 'z'
}

// lastTime returns the last number in stem that looks like a time, in ns.
func lastTime(stem string) (ns int64) {
	for stem != "" {
		m := timeWord.FindStringSubmatchIndex(stem)
		if m == nil {
			break
		}
		if t := parseTime(stem[m[2]:m[3]]); t != 0 {
			ns = t
		}
		stem = stem[m[3]:] // the separator may start the next match
	}
	return ns
}
