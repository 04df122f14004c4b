package chrometrace

import (
	"github.com/sgtrace/sgtrace/chrometrace/internal/parse"
	"github.com/sgtrace/sgtrace/profile"
)

// joinExternal joins calls to what they launched by their "External id", in traces of ROCm by PyTorch before 2.4 that have no
// correlations, and reports whether it joined any. The ID is that of the call if no other call has it: otherwise it is that
// of an operator, and joins nothing.
func (c *collector) joinExternal(f *profile.Profile) (joined bool) {
	if !c.external {
		return false
	}
	calls, unique := map[int64]*profile.Slice{}, !c.linked
	for i := range f.Events {
		if e := &f.Events[i]; e.Correlation >= parse.ByExternal && e.IsLaunch() {
			unique = unique && calls[e.Correlation] == nil
			calls[e.Correlation] = e
		}
	}
	for i := range f.Events {
		e := &f.Events[i]
		if call := calls[e.Correlation]; unique && call != nil && e.Correlation >= parse.ByExternal && e != call {
			call.Correlation = e.Correlation - parse.ByExternal // twice, if it launched two
			e.Correlation, joined = call.Correlation, true
		}
	}
	for i := range f.Events {
		if e := &f.Events[i]; e.Correlation >= parse.ByExternal {
			e.Correlation = 0
		}
	}
	return joined
}
