package sglang

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/sgtrace/sgtrace/internal/memory"
	"github.com/sgtrace/sgtrace/internal/pickle"
	"github.com/sgtrace/sgtrace/profile/recorder"
)

// errCounts means that counts are not token counts.
var errCounts = errors.New("has counts that are no numbers of tokens")

// An expertReader reads one .pt file.
type expertReader struct {
	archive *archive
	dump    *recorder.ExpertDump
	// pending are passes without counts, which have the experts of each token instead.
	pending []pending
	err     error // of the first unreadable record
	lost    int   // number of such records
}

// A pending is a pass whose tokens are counted once the number of experts is known.
type pending struct {
	id, rank int64
	chosen   pickle.Value // by layer, token, and choice
}

// readArchive reads a .pt file.
func readArchive(f *os.File) (*recorder.ExpertDump, error) {
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	a, err := openArchive(f, info.Size())
	if err != nil {
		return nil, err
	}
	data := a.files[a.dir+"data.pkl"]
	r := &expertReader{archive: a, dump: &recorder.ExpertDump{Rank: recorder.Unknown}}
	root, err := pickle.ReadScanned(data.Open, true, pickle.Options{Known: isKnownClass, Take: r.record}) // so that no prompt is held
	if err == nil {
		err = r.top(root)
	}
	if r.lost > 0 {
		err = errors.Join(err, fmt.Errorf("%d of its passes could not be read: %w", r.lost, r.err))
	}
	return r.dump, err
}

// record takes the record of one pass, and with it the prompt, which is dropped.
func (r *expertReader) record(v pickle.Value) bool {
	id, ok := v.Get("forward_pass_id").Int()
	if !ok {
		return false
	}
	r.note(r.pass(id, v))
	return true
}

// note records that a pass could not be read.
func (r *expertReader) note(err error) {
	if err == nil {
		return
	}
	r.lost++
	if r.err == nil {
		r.err = err
	}
}

// pass adds the counts of one pass.
func (r *expertReader) pass(id int64, v pickle.Value) error {
	of, rank := v.Get("global_physical_count"), v.Get("rank").Int64(recorder.Unknown)
	if of.Kind == pickle.Missing {
		if of = v.Get("topk_ids_of_layer"); of.Kind == pickle.Missing {
			return errors.New("has a pass without global_physical_count")
		}
		r.pending = append(r.pending, pending{id, rank, of})
		return nil
	}
	t, err := r.archive.tensor(of)
	if err != nil {
		return err
	}
	if len(t.shape) != 2 {
		return errors.New("has counts of a pass that are not by layer and expert")
	}
	if err := r.begin(t.shape[0], t.shape[1], rank); err != nil {
		return err
	}
	if err := r.counts(t); err != nil {
		return err
	}
	r.dump.Passes = append(r.dump.Passes, id)
	return nil
}

// begin checks the shape of a pass.
func (r *expertReader) begin(layers, count, rank int64) error {
	if err := shaped(layers, count); err != nil {
		return err
	}
	d := r.dump
	if len(d.Passes) == 0 {
		d.Layers, d.Experts, d.Physical = int(layers), int(count), true
		d.Rank = int32(max(recorder.Unknown, min(rank, math.MaxInt32)))
	} else if d.Layers != int(layers) || d.Experts != int(count) {
		return errors.New("has passes of several shapes")
	}
	return nil
}

// count counts the tokens of a pass. Numbers that are not those of an expert are padding.
func (r *expertReader) count(p pending) error {
	t, err := r.archive.tensor(p.chosen)
	switch {
	case err != nil:
		return err
	case len(t.shape) != 3 || r.dump.Map == nil:
		return errors.New("has passes that say neither how many tokens experts got nor how many experts there are")
	}
	layers, count := t.shape[0], int64(len(r.dump.Map[0]))
	if err := r.begin(layers, count, p.rank); err != nil {
		return err
	}
	from := len(r.dump.Counts)
	r.dump.Counts = memory.Append(r.dump.Counts, make([]uint32, layers*count)...)
	to, each := r.dump.Counts[from:], int(t.shape[1]*t.shape[2])
	t.each(func(i int, v int64) {
		if v >= 0 && v < count {
			to[int64(i/each)*count+v]++
		}
	})
	r.dump.Passes = append(r.dump.Passes, p.id)
	return nil
}

// counts appends the counts of a tensor, or nothing if they are invalid.
func (r *expertReader) counts(t *tensor) error {
	from, bad := len(r.dump.Counts), false
	r.dump.Counts = memory.Append(r.dump.Counts, make([]uint32, t.len())...)
	to := r.dump.Counts[from:]
	t.each(func(i int, v int64) {
		bad = bad || v < 0 || v > math.MaxUint32
		to[i] = uint32(v)
	})
	if bad {
		r.dump.Counts = r.dump.Counts[:from]
		return errCounts
	}
	return nil
}

// top reads the top-level dict.
func (r *expertReader) top(root pickle.Value) error {
	d := r.dump
	if root.Kind != pickle.Dict {
		return errors.New("is not a dump of an expert distribution recorder")
	}
	for _, key := range [...]string{"last_physical_to_logical_map", "physical_to_logical_map"} {
		if of := root.Get(key); of.Kind == pickle.Object {
			t, err := r.archive.tensor(of)
			if err == nil {
				err = r.placed(t)
			}
			if err != nil {
				return err
			}
		}
	}
	for _, p := range r.pending {
		r.note(r.count(p))
	}
	if v, ok := root.Get("average_utilization_rate_over_window").Float64(); ok && v > 0 && v <= 1 {
		d.Average = v
	}
	if of := root.Get("logical_count"); of.Kind != pickle.Missing {
		return r.ring(of)
	}
	if len(d.Passes) == 0 && d.Map == nil && r.lost == 0 {
		return errors.New("has no passes: nothing ran while it recorded")
	}
	return nil
}

// placed reads the map from physical to logical experts.
func (r *expertReader) placed(t *tensor) error {
	if len(t.shape) != 2 {
		return errors.New("has a map of experts that is not by layer and expert")
	}
	if err := shaped(t.shape[0], t.shape[1]); err != nil {
		return err
	}
	m := make([][]int32, t.shape[0])
	bad := false
	t.each(func(i int, v int64) {
		layer := i / int(t.shape[1])
		m[layer] = append(m[layer], int32(v))
		bad = bad || v < 0 || v >= maxExperts
	})
	if bad {
		return errors.New("has a map of experts that names none")
	}
	r.dump.Map = m
	return nil
}

// ring reads the counts of the mode stat, without places of the ring that were never written.
func (r *expertReader) ring(of pickle.Value) error {
	t, err := r.archive.tensor(of)
	if err != nil {
		return err
	}
	if len(t.shape) == 2 { // in a file with the initial locations of experts
		t.shape, t.stride = append([]int64{1}, t.shape...), append([]int64{0}, t.stride...)
		r.dump.Whole = true
	}
	if len(t.shape) != 3 {
		return errors.New("has counts that are not by pass, layer, and expert")
	}
	if err := shaped(t.shape[1], t.shape[2]); err != nil {
		return err
	}
	d := r.dump
	d.Layers, d.Experts, d.Ring = int(t.shape[1]), int(t.shape[2]), true
	passes := t.shape[0]
	t.shape[0] = 1
	for i := range passes {
		from := len(d.Counts)
		if err := r.counts(t); err != nil {
			return err
		}
		t.offset += t.stride[0]
		if slices.Max(d.Counts[from:]) == 0 {
			d.Counts = d.Counts[:from]
		} else {
			d.Passes = append(d.Passes, i)
		}
	}
	if len(d.Passes) == 0 {
		return errors.New("has no passes: nothing ran while it recorded")
	}
	return nil
}

// readCSV reads lines such as "3,18,39249".
func readCSV(in io.Reader) (*recorder.ExpertDump, error) {
	type row struct{ layer, expert, count int64 }
	var rows []row
	layers, most := int64(0), int64(0)
	lines := bufio.NewScanner(in)
	var bad error
	for n := 1; lines.Scan(); n++ {
		text := strings.TrimSpace(lines.Text())
		if n == 1 || text == "" {
			continue
		}
		fields := strings.Split(text, ",")
		var x [3]int64
		ok := len(fields) == len(x)
		for i := range x {
			if ok {
				v, err := strconv.ParseInt(strings.TrimSpace(fields[i]), 10, 64)
				x[i], ok = v, err == nil && v >= 0
			}
		}
		if !ok || x[0] >= maxLayers || x[1] >= maxExperts || x[2] > math.MaxUint32 {
			bad = fmt.Errorf("line %d is no layer, expert, and count", n)
			continue
		}
		rows = append(rows, row{x[0], x[1], x[2]})
		layers, most = max(layers, x[0]+1), max(most, x[1]+1)
	}
	if err := errors.Join(bad, lines.Err()); len(rows) == 0 {
		if err == nil {
			err = errors.New("has no counts")
		}
		return nil, err
	}
	d := &recorder.ExpertDump{Rank: recorder.Unknown, Layers: int(layers), Experts: int(most),
		Passes: []int64{0}, Ring: true, Whole: true, Sparse: true, Counts: make([]uint32, layers*most)}
	for _, x := range rows {
		d.Counts[x.layer*most+x.expert] += uint32(x.count)
	}
	return d, errors.Join(bad, lines.Err())
}

// readMap reads a file with the locations of experts.
func readMap(in io.Reader) (*recorder.ExpertDump, error) {
	var x struct {
		Map [][]int32 `json:"physical_to_logical_map"`
	}
	if err := json.NewDecoder(in).Decode(&x); err != nil {
		return nil, err
	}
	if len(x.Map) == 0 {
		return nil, errors.New("has no map of experts")
	}
	for _, layer := range x.Map {
		if len(layer) != len(x.Map[0]) {
			return nil, errors.New("has a map of experts whose layers differ in length")
		}
	}
	return &recorder.ExpertDump{Rank: recorder.Unknown, Map: x.Map}, nil
}
