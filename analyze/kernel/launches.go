package kernel

import (
	"github.com/sgtrace/sgtrace/analyze/distribution"
	"github.com/sgtrace/sgtrace/analyze/walk"
	"github.com/sgtrace/sgtrace/profile"
	"github.com/sgtrace/sgtrace/trace"
)

// A launcher joins the kernels of a stream to the calls that launched them.
type launcher struct {
	threads threadIndex
	classes []callClass
	byName  []walk.Paged[int32] // by thread: index of classes by name, plus one
	calls   []walk.Paged[call]  // by rank: by correlation
	long    map[*call]int64
	groups  []launchGroup
	orphans int64 // kernels without a call
}

// A call is what is kept of one. 16 bytes.
type call struct {
	end   trace.Time
	dur   uint32 // longRun: in long
	class int32  // index of classes, plus one; 0 is no call
}

// A callClass is what calls of one name and thread are.
type callClass struct {
	thread int32
	name   trace.Sym
	groups walk.Paged[int32] // by kernel: the first one of its groups, plus one
}

// A launchKey says what a group of launches is of.
type launchKey struct {
	thread       threadKey
	device       int32
	call, kernel trace.Sym
}

// A launchGroup collects launches: of the whole, the call, the time between, and the
// kernel.
type launchGroup struct {
	class  int32
	device int32
	kernel trace.Sym
	next   int32 // group of the same class and kernel on another device, plus one

	whole, call, queue, run distribution.Sample
}

// joinLaunches collects the launches of a stream.
func joinLaunches(set *profile.Set, stream profile.Stream, opt *walk.Options, in *distribution.Store) *launcher {
	l := &launcher{threads: newThreadIndex(len(set.Ranks)), calls: make([]walk.Paged[call], len(set.Ranks)), long: map[*call]int64{}}
	keep := walk.ByName[struct{}]{Syms: set.Syms, Names: opt.Names, Ranks: make([]walk.Paged[int32], 1)}
	j := walk.Joiner{Call: l.addCall, Orphan: func(*profile.Kernel) { l.orphans++ }}
	j.Work = func(k *profile.Kernel) bool {
		if !opt.Keeps(&k.Event) || opt.Names != nil && keep.Of(0, k.Name, 0) == nil {
			return true
		}
		return l.addKernel(k, in)
	}
	j.Run(profile.Within(stream, opt.From, opt.To), opt)
	l.calls, l.long = nil, nil
	return l
}

func (l *launcher) addCall(c *profile.Call) {
	if c.Correlation == 0 {
		return
	}
	at := l.calls[c.Rank].At(c.Correlation)
	// A runtime call and the driver call within it may share a correlation; the outer
	// one, which comes first, counts.
	if at.class != 0 {
		return
	}
	dur := c.Dur()
	at.end, at.class = c.Start+trace.Time(dur), l.class(c)
	if at.dur = uint32(min(dur, longRun)); at.dur == longRun {
		l.long[at] = dur
	}
}

// class returns the index of the class of a call, plus one.
func (l *launcher) class(c *profile.Call) int32 {
	thread := l.threads.of(&c.Event, c.TID)
	for int(thread) >= len(l.byName) {
		l.byName = append(l.byName, walk.Paged[int32]{})
	}
	at := l.byName[thread].At(int64(c.Name))
	if *at == 0 {
		l.classes = append(l.classes, callClass{thread: thread, name: c.Name})
		*at = int32(len(l.classes))
	}
	return *at
}

// addKernel counts a launch. It returns false if the call is not known.
func (l *launcher) addKernel(k *profile.Kernel, in *distribution.Store) bool {
	if k.Correlation == 0 {
		return false
	}
	c := l.calls[k.Rank].Find(k.Correlation)
	if c == nil || c.class == 0 {
		return false
	}
	dur := int64(c.dur)
	if c.dur == longRun {
		dur = l.long[c]
	}
	run := k.Dur()
	g := l.group(c.class-1, k)
	g.call.Add(dur, in)
	g.run.Add(run, in)
	// A kernel may end before the call that launched it: the last of a graph often
	// begin when the first ones are long over.
	g.whole.Add(dur+max(0, int64(k.Start-c.end)+run), in)
	if k.Start >= c.end {
		g.queue.Add(int64(k.Start-c.end), in)
	}
	return true
}

// group returns the group of a kernel that was launched by a call of a class. It is
// valid until the next call.
func (l *launcher) group(class int32, k *profile.Kernel) *launchGroup {
	at := l.classes[class].groups.At(int64(k.Name))
	for *at != 0 {
		if g := &l.groups[*at-1]; g.device == k.Device {
			return g
		}
		at = &l.groups[*at-1].next
	}
	*at = int32(len(l.groups)) + 1
	l.groups = append(l.groups, launchGroup{class: class, device: k.Device, kernel: k.Name})
	return &l.groups[len(l.groups)-1]
}
