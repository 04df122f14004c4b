package inputs

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/sgtrace/sgtrace/chrometrace"
	"github.com/sgtrace/sgtrace/format"
	"github.com/sgtrace/sgtrace/internal/lazyregexp"
	"github.com/sgtrace/sgtrace/internal/order"
	"github.com/sgtrace/sgtrace/perfetto"
	"github.com/sgtrace/sgtrace/trace"
)

// A recognition sorts inputs by kind.
type recognition struct {
	into                     *Loaded
	dumps, recordings, aside []*Source
	// others counts recordings when requests are wanted; named lists those that no search led to.
	others   int
	named    []string
	accounts map[*Search]*account
	empty    []Input // empty files that a search led to
}

// An account summarizes the result of a search.
type account struct {
	took       map[*format.Format]int
	extensions map[string]bool // of the files that were taken
	left       leftOut
}

// recognize examines the heads of inputs, and separates dumps of requests from profiles.
func (m *Loaded) recognize(inputs []Input) *recognition {
	r := &recognition{into: m, accounts: map[*Search]*account{}}
	most := mostOpen()
	for i, in := range inputs {
		x := &Source{Input: in, stdin: m.opt.Stdin, meter: m.opt.Meter, closed: m.opt.WithoutOriginals}
		if err := r.add(x, x.recognize(i < most)); err != nil {
			m.unusable(in, errors.Join(err, x.closeStream()))
		}
	}
	r.leaveEmpty()
	r.leaveRepeatedLogs()
	if len(r.named) > 0 {
		m.Diags.Add(trace.InputWithoutRequests.Of(r.named[0]).Times(len(r.named)))
	}
	for s, a := range r.accounts {
		if s.damage != nil {
			m.Diags.Add(trace.InputDamaged.Of(filepath.Clean(s.Name), s.damage))
		}
		for _, text := range s.missing {
			m.Diags.Add(trace.DatasetIncomplete.Of(s.Name, text))
		}
		if s.glob && len(a.left) == 0 {
			continue // taking them is what the user asked for
		}
		m.Diags.Add(trace.InputsFound.Of(s.Name, a))
	}
	return r
}

// add takes an input, or leaves it out. err is the error of recognizing x, if any; the result is what makes
// the input an error.
func (r *recognition) add(x *Source, err error) error {
	opt, f := &r.into.opt, x.Format
	if x.Input.Search != nil {
		if why, left := r.leaves(x, err); left {
			r.leave(x.Input, why)
			return x.closeStream()
		}
	}
	switch {
	case err != nil:
		return err
	case opt.Requests && !f.Requests && x.zeros:
		return errZeros
	case opt.Only != nil && f != opt.Only:
		return notRead(f)
	case opt.Requests && !f.Requests:
		r.others++
		r.named = append(r.named, x.Input.Name)
		return x.closeStream()
	case x.unpacked && x.zeros:
		return errZeros
	}
	r.take(x)
	return nil
}

// take adds an input to those to be read.
func (r *recognition) take(x *Source) {
	in, f := x.Input, x.Format
	if in.As != nil && f != in.As {
		r.into.Diags.Add(trace.InputOtherKind.Of(in.Name, in.As.Name, f.Name))
	}
	if in.Search != nil {
		a := r.account(in.Search)
		a.took[f]++
		a.extensions[filepath.Ext(in.Name)] = true
	}
	r.into.Used = append(r.into.Used, in)
	switch {
	case f.Aside:
		r.aside = append(r.aside, x)
	case f.Requests || f.Series:
		r.dumps = append(r.dumps, x)
	default:
		r.recordings = append(r.recordings, x)
	}
}

// leaves reports whether to leave out a file that a search led to because the user cannot have meant it,
// and why. err is why it cannot be read, if so.
func (r *recognition) leaves(x *Source, err error) (why reason, left bool) {
	var other foreignError
	opt, f := &r.into.opt, x.Format
	switch {
	case x.own != nil:
		return *x.own, true
	case errors.As(err, &other) && other.common:
		return byExtension(x.Input.Name), true
	case errors.As(err, &other):
		r.into.Diags.Add(trace.InputSkipped.Of(x.Input.Name, err))
		return reason{what: other.what, weight: 1}, true
	case errors.Is(err, errUnknownFormat):
		return byExtension(x.Input.Name), true
	case errors.Is(err, errEmpty):
		return emptyFile, true
	case err != nil || opt.Requests && x.zeros:
		return why, false
	case opt.Only != nil && f != opt.Only:
		r.others++
		return reason{what: f.Noun, whose: "that this command does not read", weight: 1}, true
	case opt.Requests && !f.Requests:
		r.others++
		return reason{what: f.Noun, whose: "without requests", weight: 1}, true
	}
	return why, false
}

// leave leaves out a file that a search led to.
func (r *recognition) leave(in Input, why reason) {
	if why == emptyFile {
		r.empty = append(r.empty, in)
		return
	}
	r.account(in.Search).left.add(why, in.Name)
	if info, err := os.Stat(in.Path()); err == nil && r.into.opt.Meter != nil {
		r.into.opt.Meter.Add(int(info.Size())) // counts as read
	}
}

// leaveEmpty leaves out empty files, which folders have many of. But an empty file with the extension of
// captures beside it may be a capture that failed to be written, and is reported.
func (r *recognition) leaveEmpty() {
	for _, in := range r.empty {
		a := r.account(in.Search)
		if a.extensions[filepath.Ext(in.Name)] && !saysByEmptiness(filepath.Base(in.Name)) {
			r.into.unusable(in, errEmpty)
		} else {
			a.left.add(emptyFile, in.Name)
		}
	}
}

// saysByEmptiness reports whether some format uses empty files of this name.
func saysByEmptiness(name string) bool {
	return slices.ContainsFunc(Formats, func(f *format.Format) bool { return f.Empty != nil && f.Empty(name) })
}

// account returns the account of a search, creating it if needed.
func (r *recognition) account(s *Search) *account {
	return order.Memo(r.accounts, s, func() *account {
		return &account{took: map[*format.Format]int{}, extensions: map[string]bool{}, left: s.left.clone()}
	})
}

// String says how many files were taken, by kind, and what was left out and why.
func (a *account) String() string {
	parts := order.Each(format.Sorted(a.took), func(f *format.Format) string { return several(a.took[f], f.Noun) })
	if len(parts) == 0 {
		parts = []string{"no captures"}
	}
	return strings.Join(parts, ", ") + a.left.clause()
}

// unusable reports an input that cannot be read. It is not an error if a search led to it and its content
// is in another file.
func (m *Loaded) unusable(in Input, err error) {
	why := trace.InputUnusable
	if in.Search != nil && errors.Is(err, format.ErrNotNeeded) {
		why = trace.InputSkipped
	}
	if failed := (*fs.PathError)(nil); errors.As(err, &failed) && failed.Op == "open" && failed.Path == in.Path() {
		err = failed.Err // the message already names the file
	}
	m.Diags.Add(why.Of(MessageName(in.Name), err))
}

// own lists what sgtrace writes, and how to recognize it by its beginning: sgtrace marks everything it
// writes, since users choose the names.
var own = []struct {
	reason reason
	is     func(head []byte) bool
}{
	{ownFile("timeline"), perfetto.IsOwn},
	{ownFile("timeline"), chrometrace.IsOwn},
	{ownFile("page"), func(head []byte) bool {
		return bytes.Contains(head, []byte(`<meta name="generator" content="sgtrace">`))
	}},
	{ownFile("JSON file"), lazyregexp.New(`^\s*\[?\s*\{\s*"schema"\s*:\s*"sgtrace\.`).Match},
}

// ownOf returns the reason for leaving out a file with this head if sgtrace wrote it, or else nil.
func ownOf(head []byte) *reason {
	for i := range own {
		if own[i].is(head) {
			return &own[i].reason
		}
	}
	return nil
}

// Replaceable reports whether an output may replace an input: a search led to it, and sgtrace wrote it, so
// it is not read.
func (in Input) Replaceable() bool {
	if in.Search == nil {
		return false
	}
	s, err := in.open(nil, nil)
	if err != nil {
		return false
	}
	defer s.Close()
	return s.own != nil
}
