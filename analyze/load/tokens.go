package load

import (
	"github.com/sgtrace/sgtrace/request"
	"github.com/sgtrace/sgtrace/trace"
)

// An outcome is what a thread computed for a part.
type outcome struct {
	prefills []trace.Time     // ends of prefills
	steps    []trace.Time     // ends of the steps after each of which tokens came out
	decode   request.Interval // from the first decode step to the last
}

// add notes a stage.
func (o *outcome) add(stage *request.Row) {
	switch stage.Means {
	case request.Prefilling:
		o.prefills = append(o.prefills, stage.End)
	case request.Stepping, request.Prebuilt:
		o.steps = append(o.steps, stage.End)
	case request.Answering:
		if o.decode == (request.Interval{}) {
			o.decode = request.Interval{From: stage.Start, To: stage.End}
		}
		o.decode.To = max(o.decode.To, stage.End)
	}
}

// addTokens counts the tokens of a part where they came out, as
// request.Set.TokenTimes places them, and those of its prompt where that had been
// computed. With speculation a step yields several: all of a finished request are
// divided evenly among its steps. Where steps are not traced they are spread over
// the time of decoding.
func (b *timelineBuilder) addTokens(p *request.Part, m *meter, o *outcome) {
	if prompt := p.PromptTokens - max(0, p.CachedTokens); p.PromptTokens >= 0 && len(o.prefills) > 0 {
		m.prompts = true
		m.points[b.At(o.prefills[0])].Prefill += max(0, prompt)
	}
	tokens := p.CompletionTokens
	switch {
	case p.Role == request.Prefill:
		return // its only token is that of the decode side
	case len(o.steps) == 0 && tokens > 1 && o.decode.To > o.decode.From:
		b.spreadTokens(m, o.decode, tokens-1)
		tokens = 1
	}
	steps := o.steps
	if p.Role != request.Decode {
		steps = append(o.prefills, steps...)
	}
	n := int64(len(steps))
	tokens = max(tokens, n)
	for i, end := range steps {
		m.points[b.At(end)].Output += int64(i+1)*tokens/n - int64(i)*tokens/n
	}
}

// addBareTokens counts the tokens of a part without stages: those of the prompt
// and the first one where the server says that it came out, the rest until the end.
func (b *timelineBuilder) addBareTokens(p *request.Part, m *meter) {
	if p.TTFT < 0 || p.CompletionTokens < 1 {
		return
	}
	o := outcome{prefills: []trace.Time{p.Start + trace.Time(p.TTFT)}}
	o.decode = request.Interval{From: o.prefills[0], To: p.End}
	b.addTokens(p, m, &o)
}

// spreadTokens counts tokens that came out evenly over an interval.
func (b *timelineBuilder) spreadTokens(m *meter, over request.Interval, tokens int64) {
	ns := float64(over.To - over.From)
	until := func(t trace.Time) int64 { return int64(float64(tokens) * float64(t-over.From) / ns) }
	cut := b.within(over.From, over.To)
	for from := cut.From; from < cut.To; {
		at := b.At(from)
		to := min(cut.To, b.Start(at)+trace.Time(b.Bucket))
		m.points[at].Output += until(to) - until(from)
		from = to
	}
}
