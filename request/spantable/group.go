package spantable

import "github.com/sgtrace/sgtrace/internal/memory"

// groupTraces makes the spans of each trace contiguous, with traces in order of their numbers, and returns
// where each begins, followed by the number of spans. In a dump, the spans of a request are mixed with all
// others of the time, so a walk over requests, as in most reports, would find each span in a different
// place of memory. The spans of one trace stay in reading order.
func (d *Table) groupTraces() (begin []uint32) {
	begin = make([]uint32, d.Traces()+2)
	grouped, latest := true, uint32(0)
	for i := range d.Numbers() {
		t := d.Identity(i).Trace
		grouped, latest = grouped && t >= latest, t
		begin[t+1]++
	}
	next := uint32(0)
	for t, spans := range begin[1:] {
		begin[t+1] = next
		next += spans
	}
	// From here on, begin[t+1] is where the next span of trace t goes; at the end, that is where trace t+1 begins.
	if grouped {
		copy(begin, begin[1:])
		return begin[:d.Traces()+1]
	}
	place := memory.Make[uint32](d.Len())
	for i := range d.Numbers() {
		next := &begin[d.Identity(i).Trace+1]
		place[i] = *next
		*next++
	}
	d.move(place)
	return begin[:d.Traces()+1]
}

// move renumbers the spans. Bodies stay where they are: each becomes a row just once, which then goes to
// the span's new number.
func (d *Table) move(place []uint32) {
	ids := memory.MakeColumn[Identity](d.Len())
	events, links := memory.MakeColumn[Event](d.events.Len()), memory.MakeColumn[link](d.links.Len())
	each(&d.ids, false, func(i int, id *Identity) {
		to := ids.At(int(place[i]))
		*to = *id
		events, links := d.extent(i)
		to.events, to.links = events.count(), links.count()
	})
	firstEvent, firstLink := uint32(0), uint32(0)
	for i := range d.Numbers() {
		id := ids.At(i)
		events, links := id.events, id.links
		id.events, id.links = firstEvent, firstLink
		firstEvent, firstLink = firstEvent+events, firstLink+links
	}
	each(&d.ids, false, func(i int, _ *Identity) {
		to := ids.At(int(place[i]))
		fromEvents, fromLinks := d.extent(i)
		copyRows(&events, int(to.events), &d.events, fromEvents)
		copyRows(&links, int(to.links), &d.links, fromLinks)
	})
	d.ids.Free()
	d.events.Free()
	d.links.Free()
	memory.Free(d.read)
	d.ids, d.events, d.links, d.read = ids, events, links, nil
	if d.place == nil {
		d.place = place
		return
	}
	for k, was := range d.place { // spans were added since the last move
		d.place[k] = place[was]
	}
	memory.Free(place)
}

// body returns the body of span i.
func (d *Table) body(i int) *Body {
	if d.place == nil {
		return d.bodies.At(i)
	}
	if d.read == nil { // rarely needed: to report spans that were exported twice
		d.read = memory.Make[uint32](len(d.place))
		for k, place := range d.place {
			d.read[place] = uint32(k)
		}
	}
	return d.bodies.At(int(d.read[i]))
}

// copyRows copies rows of one column into another, to row at and following.
func copyRows[T any](to *memory.Column[T], at int, from *memory.Column[T], rows numbers) {
	for ; rows.from < rows.to; rows.from++ {
		*to.At(at) = *from.At(rows.from)
		at++
	}
}
