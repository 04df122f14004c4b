package drawing

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/sgtrace/sgtrace/internal/order"
	"github.com/sgtrace/sgtrace/internal/parallel"
	"github.com/sgtrace/sgtrace/request"
	"github.com/sgtrace/sgtrace/trace"
	"github.com/sgtrace/sgtrace/trace/naming"
)

// drawThreads draws the thread view: host > process > lanes and counters. Processes are drawn in parallel,
// since rooms says how much capacity each needs.
func (l *layout) drawThreads(b *trace.Builder, rooms []trace.Capacity) *drawing {
	units, isTop := l.findUnits(func(int) bool { return true }, func(int) bool { return false })
	d := l.newDrawing(b, isTop)
	// A thread span is named after the request it serves, since its row already names the thread.
	d.name = func(i int, _ request.Kind) trace.Sym { return l.parts[l.set.PartOf(i)] }
	root := d.b.Track(trace.Track{Name: d.b.Intern("By process"), Order: 0, Rank: trace.NoRank,
		Desc: d.b.Intern("every process with its requests on lanes: a request keeps its lane where it can")})
	l.outline(b, root, total(rooms).Slices)
	hosts := d.hostTracks(root)
	var procs [][]unit
	var own []trace.Capacity
	eachGroup(units, byProc, func(units []unit) {
		procs = append(procs, units)
		own = append(own, rooms[units[0].proc])
	})
	forks := b.Fork(trace.Capacity{}, own...)
	longest := make([]int, len(procs)) // longest first, so that no core ends up drawing the longest alone
	work := make([]int, len(procs))
	for k, units := range procs {
		longest[k], work[k] = k, own[k].Slices
		if l.set.Kind(int(units[0].span)) == request.Root {
			work[k] *= 2 // request spans have more arguments
		}
	}
	slices.SortStableFunc(longest, func(x, y int) int { return cmp.Compare(work[y], work[x]) })
	parallel.Each(len(procs), func(i int) {
		k := longest[i]
		forks[k].Under = hosts[procs[k][0].proc]
		d.on(forks[k].Builder).drawProcess(procs[k])
	})
	shifts := make([]trace.SliceID, len(l.set.Procs))
	for k, shift := range trace.Join(forks...) {
		shifts[procs[k][0].proc] = shift
	}
	parallel.Rows(len(d.slice), request.RowSize, func(from, to int) {
		for i := from; i < to; i++ {
			if d.slice[i] != 0 {
				d.slice[i] += shifts[l.set.ProcOf(i)]
			}
		}
	})
	d.link()
	return d
}

// drawProcess draws the units of a proc.
func (d *drawing) drawProcess(units []unit) {
	p := int(units[0].proc)
	proc, track := &d.set.Procs[p], d.procTrack(p)
	d.sortUnits(units)
	for k, lane := range pack(units) {
		d.draw(lane, d.b.Track(trace.Track{Parent: track, Kind: trace.KindThread, Order: int32(k + counterOrder),
			Name: d.b.Intern("lane " + strconv.Itoa(k+1)), Rank: proc.Rank, PID: proc.PID, Host: d.b.Intern(proc.Host)}))
	}
	d.drawCounters(p, track)
}

// counterOrder leaves room for the counters above the lanes of a process.
const counterOrder = 10

// hostTracks adds a track per host, in the order of the procs, and returns the host track of each proc.
func (d *drawing) hostTracks(root trace.TrackID) []trace.TrackID {
	tracks := make([]trace.TrackID, len(d.set.Procs))
	byHost := map[string]trace.TrackID{}
	for p := range d.set.Procs {
		proc := &d.set.Procs[p]
		name, desc := d.set.HostOf(p), "host "+proc.Host
		if proc.Host == "" {
			name, desc = "service "+proc.Service, "the spans do not tell the host"
		}
		track := order.Memo(byHost, proc.Host+"\x00"+name, func() trace.TrackID {
			return d.b.Track(trace.Track{Parent: root, Kind: trace.KindHost, Name: d.b.Intern(name), Host: d.b.Intern(proc.Host),
				Order: int32(len(byHost)), Rank: trace.NoRank, Desc: d.b.Intern(desc)})
		})
		tracks[p] = track
	}
	return tracks
}

// procTrack adds the track of a proc.
func (d *drawing) procTrack(p int) trace.TrackID {
	proc := &d.set.Procs[p]
	name := d.set.ProcName(p)
	switch {
	case proc.PID != 0:
		name += naming.Separator + fmt.Sprintf("pid %d", proc.PID)
	case proc.Instance != "":
		name += naming.Separator + "instance " + shorten(proc.Instance)
	}
	return d.b.Track(trace.Track{Kind: trace.KindProcess, Name: d.b.Intern(name), Order: int32(p),
		Rank: proc.Rank, PID: proc.PID, Host: d.b.Intern(proc.Host), Desc: d.b.Intern(source(proc))})
}

// partName names part p of a request: "prefill Req e1cca7b0".
func (l *layout) partName(p int) string {
	part := &l.set.Parts[p]
	if part.Root != request.None {
		// The names of unified servers' requests begin with a space.
		if name := strings.TrimSpace(l.set.Name(part.Root)); name != "" {
			return name
		}
	}
	if part.Request != request.None {
		return "Req " + shorten(l.set.Text(l.set.Requests[part.Request].RID))
	}
	return "Req ?"
}

// laneEnds holds the end of the last unit on each lane, as the leaves of a tree whose nodes have the
// earliest end below them. It finds the first free lane without looking at all occupied ones, of which
// there may be as many as concurrent requests.
type laneEnds struct {
	tree  []trace.Time // 1 is the root, 2i and 2i+1 are the children of i; the second half are the leaves
	count int
}

// add adds an empty lane.
func (l *laneEnds) add() {
	if half := len(l.tree) / 2; l.count == half {
		old := l.tree[half:]
		l.tree = make([]trace.Time, max(2, 4*half))
		for i := range l.tree {
			l.tree[i] = math.MaxInt64
		}
		l.count = 0
		for _, end := range old {
			l.count++
			l.set(l.count-1, end)
		}
	}
	l.count++
}

func (l *laneEnds) at(lane int) trace.Time { return l.tree[len(l.tree)/2+lane] }

func (l *laneEnds) set(lane int, end trace.Time) {
	i := len(l.tree)/2 + lane
	l.tree[i] = end
	for i /= 2; i > 0; i /= 2 {
		l.tree[i] = min(l.tree[2*i], l.tree[2*i+1])
	}
}

// next returns the first lane, starting at from, that ends at or before most, or the number of lanes if
// there is none.
func (l *laneEnds) next(from int, most trace.Time) int {
	if from >= l.count {
		return l.count
	}
	half := len(l.tree) / 2
	i := half + from
	for l.tree[i] > most {
		for i%2 == 1 { // no right sibling
			if i /= 2; i <= 1 {
				return l.count
			}
		}
		i++
	}
	for i < half {
		if i *= 2; l.tree[i] > most {
			i++
		}
	}
	return min(i-half, l.count)
}
