package parse

import (
	"math"
	"strconv"

	"github.com/sgtrace/sgtrace/internal/jsonscan"
	"github.com/sgtrace/sgtrace/profile"
	"github.com/sgtrace/sgtrace/trace"
)

// collective records that the event is one.
func (p *parser) collective(index, row int32, onGPU bool) {
	ev := &p.ev
	c := profile.Collective{
		Event: index, Row: row, Time: ev.ts, Dur: ev.dur, Name: p.nameOf(ev).sym, OnGPU: onGPU,
		Seq: p.intArg(argSeq), In: p.intArg(argIn), Out: p.intArg(argOut),
		Op: p.symArg(argOp), Group: p.symArg(argGroup), Ranks: p.symArg(argRanks), Dtype: p.symArg(argDtype),
		GroupSize: -1, Correlation: max(0, p.intArg(argCorrelation)),
	}
	if onGPU {
		c.Splits = p.symArg(argSplits)
	} else if c.Op == 0 && p.nameOf(ev).isWaiting() {
		c.Op = c.Name
	}
	if n := p.intArg(argGroupSize); n > 0 && n <= math.MaxInt32 {
		c.GroupSize = int32(n)
	}
	if p.found&(1<<argCommsID) != 0 {
		// A hash: if it is printed as a signed number, its bits are the same.
		text := string(p.got[argCommsID].text())
		if u, err := strconv.ParseUint(text, 10, 64); err == nil {
			c.CommsID = u
		} else if v, err := strconv.ParseInt(text, 10, 64); err == nil {
			c.CommsID = uint64(v)
		}
	}
	p.out.Collectives = append(p.out.Collectives, c)
}

// intArg returns the argument with a role; -1 if there is none.
func (p *parser) intArg(r argRole) int64 {
	if p.found&(1<<r) != 0 {
		if n, ok := jsonscan.Int(p.got[r].text()); ok {
			return n
		}
	}
	return -1
}

// symArg returns the text of the argument with a role; 0 if there is none.
func (p *parser) symArg(r argRole) trace.Sym {
	if p.found&(1<<r) == 0 {
		return 0
	}
	return p.symbols.Intern(p.idText(p.got[r].raw))
}
