package drawing

import (
	"strconv"

	"github.com/sgtrace/sgtrace/profile"
	"github.com/sgtrace/sgtrace/request"
	"github.com/sgtrace/sgtrace/trace"
	"github.com/sgtrace/sgtrace/trace/naming"
)

// A Path is the critical path of a request: what it waited for, one thing after another.
type Path struct {
	Name   string // name of its row: "f3a1b2c4 · 812 ms"
	Pieces []Piece
}

// A Piece is one segment of a critical path.
type Piece struct {
	From, Until trace.Time
	Name        string // "queue · prefill TP0"
	Record      []Field
	Stage       int // row of the stage that it waits for, or request.None
}

// drawnPiece is the slice of a piece, to be joined with the stage that it waits for.
type drawnPiece struct {
	slice trace.SliceID
	from  trace.Time
	stage int
}

// drawPaths adds the group of critical paths: a row for each request, whose pieces are joined by arrows. It
// returns the pieces that wait for a stage.
func drawPaths(b *trace.Builder, paths []Path) (waits []drawnPiece) {
	if len(paths) == 0 {
		return nil
	}
	top := b.Track(trace.Track{Name: b.Intern(profile.CriticalPath), Order: pathsOrder, Rank: trace.NoRank,
		Desc: b.Intern("what the slowest requests waited for, one thing after another: each row adds up to the E2E of a request")})
	then := b.Intern("then")
	for k := range paths {
		p := &paths[k]
		track := b.Track(trace.Track{Parent: top, Kind: trace.KindThread, Name: b.Intern(strconv.Itoa(k+1) + naming.Separator + p.Name), Order: int32(k), Rank: trace.NoRank})
		before := trace.SliceID(0)
		for i := range p.Pieces {
			x := &p.Pieces[i]
			s := trace.Slice{Time: x.From, Dur: int64(x.Until - x.From), Track: track, Name: b.Intern(x.Name), Args: fields(b, "waits_", x.Record)}
			at := b.Slice(s, 0)
			if before != 0 {
				b.Flow(trace.Flow{From: before, To: at, Name: then})
			}
			if before = at; x.Stage != request.None {
				waits = append(waits, drawnPiece{at, x.From, x.Stage})
			}
		}
	}
	return waits
}

// linkPaths draws arrows between pieces of paths and the stages they wait for, from the one that begins
// first to the other.
func (d *drawing) linkPaths() {
	name := d.b.Intern("waits for")
	for _, p := range d.waits {
		stage := d.slice[p.stage]
		if stage == 0 {
			continue
		}
		f := trace.Flow{From: stage, To: p.slice, Name: name}
		if d.set.Row(p.stage).Start > p.from {
			f.From, f.To = f.To, f.From
		}
		d.b.Flow(f)
	}
}
