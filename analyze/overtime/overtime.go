package overtime

import (
	"cmp"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/sgtrace/sgtrace/analyze/load"
	"github.com/sgtrace/sgtrace/internal/order"

	"github.com/sgtrace/sgtrace/analyze/gpu"
	"github.com/sgtrace/sgtrace/analyze/words"
	"github.com/sgtrace/sgtrace/profile"
	"github.com/sgtrace/sgtrace/profile/kernelname"
	"github.com/sgtrace/sgtrace/request"
	"github.com/sgtrace/sgtrace/trace"
)

// Options say what to measure over time.
type Options struct {
	Bucket   time.Duration // 0 chooses one
	From, To trace.Time    // bounds on the clocks of hosts, as in [gpu.Options]; 0 is open
	Requests *request.Set  // requests that were under way meanwhile; nil is unknown
	// Everything asks for the launch queue and the counters, too, not only for what finders need.
	Everything bool
}

// A Timeline is what devices did over time. Times are on the reference clock if [profile.Set] relates
// the clocks of ranks.
type Timeline struct {
	load.Grid
	Devices  []Device // by rank and device
	Counters []Counter
	// Under is the mean number of requests under way, by bucket; nil where no requests are known.
	Under   []float64
	Changes []Change

	fine    *load.Grid // the grid in which changes are looked for
	parts   int        // fine buckets per bucket
	under   []float64  // like Under, by fine bucket
	any     []int64    // ns in which at least one request was under way, by fine bucket
	several bool       // a rank has several devices
	length  int64      // GPU time, ns
	skipped int        // devices that were left out of Devices
	judged  int        // devices with enough data to look for changes
}

// A Device is a device of a rank over time.
type Device struct {
	Rank      string
	RankIndex int32
	Device    int32 // as the process numbers it
	Cells     []Cell
	Called    bool // launches were recorded; otherwise the queue is unknown
	// Stepped reports whether steps of a server were annotated, and Counted whether all of them name
	// their tokens.
	Stepped, Counted bool

	fine []Cell // by bucket of Timeline.fine
	// For programs that are not servers: what they call a step, "" if unknown, and the steps that launched something, in order.
	step   string
	rounds []round
}

// A Cell is what a device did in one bucket. Times are in ns.
type Cell struct {
	Recorded      int64 // part of the bucket in which the rank was recorded
	Busy          int64 // some kernel or copy ran
	Compute, Comm int64 // some kernel computed; some kernel communicated
	Hidden        int64 // a kernel communicated while another computed
	Queued        int64 // work had been launched but not started, summed over all of it
	MostQueued    int   // most work that was queued at once
	Stepped       int64 // some step of the server was under way
	Tokens        float64

	steps     int     // steps that end in it
	prefilled int64   // part of Stepped that is prefill
	batches   float64 // batch size times ns, over the steps whose batch size is known
	batched   int64   // ns of these steps
}

// add adds what a device did in a part of a bucket.
func (c *Cell) add(o *Cell) {
	c.Recorded += o.Recorded
	c.Busy += o.Busy
	c.Compute += o.Compute
	c.Comm += o.Comm
	c.Hidden += o.Hidden
	c.Queued += o.Queued
	c.MostQueued = max(c.MostQueued, o.MostQueued)
	c.Stepped += o.Stepped
	c.Tokens += o.Tokens
	c.steps += o.steps
	c.prefilled += o.prefilled
	c.batches += o.batches
	c.batched += o.batched
}

// Limits on buckets and cells: nobody looks at more, and memory would run out.
const (
	maxBuckets = 20_000
	maxCells   = 250_000
	maxDevices = 64 // per rank: no process uses more
)

// A Collector records what devices do while they are measured. It is a [gpu.Watch].
type Collector struct {
	set      *profile.Set
	opt      Options
	coarse   *load.Grid // the grid that is shown
	grid     *load.Grid // the grid of its parts, in which changes are looked for
	parts    int        // buckets of grid per bucket of coarse
	recorded [][]int64  // by rank and bucket of grid, ns
	err      error
	// operators means that operators are compared, which have no bare names.
	operators bool
	tallies   []map[rangeKey]*tally // by stream

	mu      sync.Mutex
	devices []*Device
	watched map[int32]int // number of devices by rank
	skipped int           // devices beyond maxDevices
}

// Collect returns a collector for the devices of a set.
func Collect(set *profile.Set, opt Options) *Collector {
	return &Collector{set: set, opt: opt, watched: map[int32]int{}, tallies: make([]map[rangeKey]*tally, len(set.Streams))}
}

// Recorded chooses the buckets, given when each rank was recorded. It puts these times on the reference clock in place.
func (c *Collector) Recorded(ranks [][]request.Interval) {
	var all []request.Interval
	for rank := range ranks {
		for i, r := range ranks[rank] {
			ranks[rank][i].From, ranks[rank][i].To = c.place(int32(rank), r.From, r.To)
			if ranks[rank][i].From < ranks[rank][i].To {
				all = append(all, ranks[rank][i])
			}
		}
	}
	c.coarse = load.NewGrid(all, c.opt.Bucket)
	for c.opt.Bucket == 0 && c.coarse.N() > 1 && c.coarse.N()*len(ranks) > maxCells {
		c.coarse = load.NewGrid(all, 2*time.Duration(c.coarse.Bucket))
	}
	if n := c.coarse.N(); n > maxBuckets || n*len(ranks) > maxCells {
		c.err = fmt.Errorf("--bucket %v: that is too short for what was recorded, %s of %s; choose longer ones, or a part of the time",
			c.opt.Bucket, words.Counted(n, "bucket"), words.Counted(len(ranks), "rank"))
		c.coarse = &load.Grid{Bucket: 1}
	}
	c.grid, c.parts = c.coarse.Fine(maxCells / max(1, len(ranks)))
	c.recorded = make([][]int64, len(ranks))
	for rank := range ranks {
		c.recorded[rank] = make([]int64, c.grid.N())
		for _, r := range ranks[rank] {
			c.grid.Each(r.From, r.To, func(b int, length int64) { c.recorded[rank][b] += length })
		}
	}
}

// place clips a time of a rank to the requested window, and puts it on the reference clock.
func (c *Collector) place(rank int32, from, to trace.Time) (trace.Time, trace.Time) {
	if c.opt.From != 0 {
		from, to = max(from, c.opt.From), max(to, c.opt.From)
	}
	if c.opt.To != 0 {
		from, to = min(from, c.opt.To), min(to, c.opt.To)
	}
	ahead := trace.Time(c.set.ClockOffsetOf(rank))
	return from - ahead, to - ahead
}

// Device returns the watch over a device; nil for devices of a rank beyond maxDevices.
func (c *Collector) Device(rank, device int32) gpu.DeviceWatch {
	if !c.takes(rank) {
		return nil
	}
	d := &Device{Rank: c.set.Ranks[rank], RankIndex: rank, Device: device, fine: make([]Cell, c.grid.N())}
	for b := range d.fine {
		d.fine[b].Recorded = c.recorded[rank][b]
	}
	c.mu.Lock()
	c.devices = append(c.devices, d)
	c.mu.Unlock()
	w := &watch{of: c, device: d}
	if c.opt.Everything {
		w.queue = load.NewQueue(c.grid)
	}
	return w
}

// takes reports whether a rank may have one more device, and counts it. Devices of a rank arrive one after the other.
func (c *Collector) takes(rank int32) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.watched[rank] == maxDevices {
		c.skipped++
		return false
	}
	c.watched[rank]++
	return true
}

// A watch observes one device.
type watch struct {
	of     *Collector
	device *Device
	queue  *load.Queue // nil unless asked for
}

func (w *watch) Ran(from, to trace.Time, running gpu.Running) {
	from, to = w.of.place(w.device.RankIndex, from, to)
	compute, comm := running.Has(kernelname.ClassCompute), running.Has(kernelname.ClassCommunication)
	w.of.grid.Each(from, to, func(b int, length int64) {
		cell := &w.device.fine[b]
		cell.Busy += length
		if compute {
			cell.Compute += length
		}
		if comm {
			cell.Comm += length
		}
		if compute && comm {
			cell.Hidden += length
		}
	})
}

func (w *watch) Queued(launched, started trace.Time) {
	if w.queue == nil {
		return
	}
	w.device.Called = true
	w.queue.Add(w.of.place(w.device.RankIndex, launched, started))
}

func (w *watch) Done() {
	if w.queue == nil {
		return
	}
	area, most := w.queue.Finish()
	for b := range area {
		w.device.fine[b].Queued, w.device.fine[b].MostQueued = area[b], most[b]
	}
	w.queue = nil
}

// Err returns an error if the requested buckets are too short; then nothing is measured.
func (c *Collector) Err() error { return c.err }

// Timeline returns what was collected, with the steps of g, the measurement that c watched. It reads
// counters if Everything is set.
func (c *Collector) Timeline(g *gpu.GPUs) *Timeline {
	t := &Timeline{Grid: *c.coarse, fine: c.grid, parts: c.parts, length: g.Length(), skipped: c.skipped}
	slices.SortFunc(c.devices, func(a, b *Device) int {
		return cmp.Or(cmp.Compare(a.RankIndex, b.RankIndex), cmp.Compare(a.Device, b.Device))
	})
	for i, d := range c.devices {
		t.several = t.several || i > 0 && c.devices[i-1].RankIndex == d.RankIndex
		t.Devices = append(t.Devices, *d)
	}
	c.addSteps(t, g)
	c.addRounds(t)
	for i := range t.Devices {
		d := &t.Devices[i]
		d.Cells = make([]Cell, t.N())
		for b := range d.fine {
			d.Cells[b/c.parts].add(&d.fine[b])
		}
	}
	c.addRequests(t)
	if c.opt.Everything {
		t.Counters = c.counters()
	}
	rows := order.SumRows(g.GPUs, func(x *gpu.GPU) int64 { return x.Rows })
	kernels := c.kernelsOf(t, g, rows)
	found := slices.Concat(c.gapPaces(t, g, kernels), c.paces(t, kernels), c.repeats(t, kernels), c.copyPaces(t, g))
	if x := c.transferPace(t, g, kernels); x != nil {
		found = append(found, *x)
	}
	t.findChanges(found)
	c.addKernels(t)
	return t
}

// BusyFrom returns from when on devices are busy nearly all the time, if they are idle most of the time before, and nearly all of
// their idle time is then; the part of it that is, and how busy they are afterward. at is 0 if there is no such time.
func (t *Timeline) BusyFrom() (at trace.Time, before, busy float64) {
	const nearly, mostly, least = 0.9, 0.5, 0.1 // least is the part of all time that must follow
	const shortest = 100_000                    // ns: a start of a few ms is not worth telling
	if t.skipped > 0 || t.fine.Bucket < shortest {
		return 0, 0, 0
	}
	cells := make([]Cell, t.fine.N())
	var all, first Cell
	for i := range t.Devices {
		fine, works := t.Devices[i].fine, func(c Cell) bool { return c.Busy > 0 }
		from := max(0, slices.IndexFunc(fine, works)) // its first work
		to := len(fine)
		for to > from && !works(fine[to-1]) {
			to--
		}
		for b := from; b < to; b++ {
			cells[b].add(&fine[b])
			all.add(&fine[b])
		}
	}
	idle := func(c *Cell) float64 { return float64(c.Recorded - c.Busy) }
	clearest := 0.0 // of two parts: how far apart they are, squared, times their lengths
	for b := range cells {
		length, then := float64(first.Recorded), float64(all.Recorded-first.Recorded)
		if length > 0 && then >= least*float64(all.Recorded) {
			was, is := idle(&first)/length, (idle(&all)-idle(&first))/then
			if clear := (was - is) * (was - is) * length * then; clear > clearest {
				clearest, at = clear, 0
				if before, busy = idle(&first)/idle(&all), 1-is; was >= mostly && before >= nearly && busy >= nearly {
					at = t.fine.Start(b)
				}
			}
		}
		first.add(&cells[b])
	}
	return at, before, busy
}

// Name returns the name of a device: its rank, and its number where ranks have several.
func (t *Timeline) Name(d *Device) string {
	if t.several {
		return fmt.Sprintf("%s GPU %d", d.Rank, d.Device)
	}
	return d.Rank
}
