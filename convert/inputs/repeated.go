package inputs

import (
	"crypto/sha256"
	"hash/maphash"
	"io"
	"slices"

	"github.com/sgtrace/sgtrace/trace"
)

// headSeed is for hashes of the beginnings of logs, which this process compares with each other only.
var headSeed = maphash.MakeSeed()

// leaveRepeatedLogs leaves out copies of logs, compressed or not: each would count as another server. Dumps and
// recordings are compared when they are read. What was scraped or printed at one moment stays: at another moment, it may
// have been the same.
func (r *recognition) leaveRepeatedLogs() {
	type key struct {
		format string
		head   uint64
	}
	alike := map[key]int{}
	of := func(x *Source) key { return key{x.Format.Noun, x.head} }
	isLog := func(x *Source) bool { return x.Format.Series && !x.Format.Momentary && !x.Once && x.names == nil }
	for _, x := range r.dumps {
		if isLog(x) {
			alike[of(x)]++
		}
	}
	first := map[[sha256.Size]byte]*Source{}
	r.dumps = slices.DeleteFunc(r.dumps, func(x *Source) bool {
		if !isLog(x) || alike[of(x)] < 2 {
			return false
		}
		sum, err := x.sum()
		if err != nil {
			return false // reading it reports the error
		}
		before := first[sum]
		if before == nil {
			first[sum] = x
			return false
		}
		r.into.Diags.Add(trace.CaptureRepeated.Of(x.Input.Name, "it", "lines", before.Input.Name))
		r.into.Used = slices.DeleteFunc(r.into.Used, func(in Input) bool { return in.Name == x.Input.Name })
		x.closeStream() // of a file that was only looked at
		return true
	})
}

// sum returns a hash of the content.
func (x *Source) sum() (sum [sha256.Size]byte, err error) {
	s, err := x.Input.open(nil, nil)
	if err != nil {
		return sum, err
	}
	defer s.Close()
	h := sha256.New()
	if _, err := io.Copy(h, s); err != nil {
		return sum, err
	}
	return [sha256.Size]byte(h.Sum(nil)), nil
}
