package recorder

import "github.com/sgtrace/sgtrace/trace"

// A Usage is the memory of a device's allocator, in bytes.
type Usage struct {
	// Allocated is the memory that was requested and not given back, or is still used by a stream, and Reserved the
	// memory that the allocator holds of the device.
	Allocated, Reserved int64
}

// A Replay is the use of a device over its entries.
type Replay struct {
	Start, End, Peak Usage // Peak is the usage when most was allocated
	PeakAt           int   // index of the entry that led to it; -1 is the start
	MostReserved     int64
	// Grown is the memory that was allocated by an entry, and is still there at the end.
	Grown int64
	Lost  int64 // memory whose free or allocation is missing: 0 unless entries are missing
}

// reserves returns by how much an entry changes the memory that the allocator holds of the device.
func (e *Entry) reserves() int64 {
	switch e.Action {
	case SegmentAlloc, SegmentMap:
		return e.Size
	case SegmentFree, SegmentUnmap:
		return -e.Size
	}
	return 0
}

// Now returns the usage at the moment of the snapshot, from its blocks: allocated is the requested size of
// blocks in use, pending that of blocks that a stream may still use.
func (d *Device) Now() (allocated, pending, reserved int64) {
	for i := range d.Segments {
		s := &d.Segments[i]
		reserved += s.Size
		for _, b := range s.Blocks {
			switch b.State {
			case Active:
				allocated += b.Requested
			case Pending:
				pending += b.Requested
			}
		}
	}
	return allocated, pending, reserved
}

// Replay replays the entries. Memory that they free but did not allocate was there at the start, and so was
// each block in use that no entry allocated.
func (d *Device) Replay() Replay {
	r := Replay{PeakAt: -1}
	alive := map[uint64]int64{}   // bytes by address
	var allocated, reserved int64 // since the start
	for i := range d.Entries {
		e := &d.Entries[i]
		reserved += e.reserves()
		switch e.Action {
		case Alloc:
			old := alive[e.Address] // the entry that freed it is missing
			allocated -= old
			r.Lost += old
			alive[e.Address] = e.Size
			allocated += e.Size
		case FreeCompleted:
			if size, ok := alive[e.Address]; ok {
				delete(alive, e.Address)
				allocated -= size
			} else {
				r.Start.Allocated += e.Size
				allocated -= e.Size
			}
		}
	}
	_, _, r.End.Reserved = d.Now()
	r.Start.Reserved = r.End.Reserved - reserved
	for i := range d.Segments {
		for _, b := range d.Segments[i].Blocks {
			if b.State == Inactive {
				continue
			}
			if size, ok := alive[b.Address]; ok && b.Address != 0 {
				delete(alive, b.Address)
				r.Grown += size
			} else {
				r.Start.Allocated += b.Requested
			}
		}
	}
	for _, size := range alive {
		r.Lost += size // not a block any more: the entry that freed it is missing
	}
	r.End.Allocated = r.Start.Allocated + allocated
	r.Peak, r.MostReserved = r.Start, r.Start.Reserved
	d.Walk(r.Start, func(i int, u Usage) {
		if u.Allocated > r.Peak.Allocated {
			r.Peak, r.PeakAt = u, i
		}
		r.MostReserved = max(r.MostReserved, u.Reserved)
	})
	return r
}

// Walk calls f with the usage after each entry that changes it.
func (d *Device) Walk(start Usage, f func(i int, u Usage)) {
	alive, u := map[uint64]int64{}, start
	for i := range d.Entries {
		e := &d.Entries[i]
		u.Reserved += e.reserves()
		switch e.Action {
		case Alloc:
			u.Allocated += e.Size - alive[e.Address]
			alive[e.Address] = e.Size
		case FreeCompleted:
			size, ok := alive[e.Address]
			if !ok {
				size = e.Size
			}
			delete(alive, e.Address)
			u.Allocated -= size
		default:
			if e.reserves() == 0 {
				continue
			}
		}
		f(i, u)
	}
}

// At returns the usage after each of some entries, which are in order.
func (d *Device) At(start Usage, entries []int) []Usage {
	out, u := make([]Usage, 0, len(entries)), start
	d.Walk(start, func(i int, behind Usage) {
		for len(out) < len(entries) && entries[len(out)] < i {
			out = append(out, u)
		}
		u = behind
	})
	for len(out) < len(entries) {
		out = append(out, u)
	}
	return out
}

// A Life is a block, from the entry that allocated it to the one that freed it.
type Life struct {
	Address  uint64
	From, To int // indexes of entries; To is the number of entries if none freed it
	Size     int64
	Where    trace.Sym // 0 is unknown
	// Kept means that the block is in use at the end, outside of CUDA graphs and memory pools, which keep their
	// blocks anyway.
	Kept bool
}

// Lives returns the blocks that entries allocated, in order. A block ends if its address is allocated again.
func (d *Device) Lives() []Life {
	var list []Life
	alive := map[uint64]int{} // index in the list by address
	for i := range d.Entries {
		e := &d.Entries[i]
		if e.Action != Alloc && e.Action != FreeCompleted {
			continue
		}
		if k, ok := alive[e.Address]; ok {
			list[k].To = i
			delete(alive, e.Address)
		}
		if e.Action == Alloc {
			alive[e.Address] = len(list)
			list = append(list, Life{Address: e.Address, From: i, To: len(d.Entries), Size: e.Size, Where: e.Where})
		}
	}
	for i := range d.Segments {
		s := &d.Segments[i]
		for _, b := range s.Blocks {
			if k, ok := alive[b.Address]; ok && b.Address != 0 && b.State != Inactive {
				list[k].Kept = !s.Pool
			}
		}
	}
	return list
}

// A Holding is the memory allocated by one call site.
type Holding struct {
	Where  trace.Sym // 0 is unknown
	Before bool      // allocated before the first entry
	Bytes  int64
	N      int64
}

// Holdings returns the memory in use after an entry, by call site; -1 is the start. After the last entry,
// blocks also have the call sites of older allocations.
func (d *Device) Holdings(r *Replay, at int) []Holding {
	sums := map[Holding]*Holding{}
	add := func(key Holding, bytes, n int64) {
		if sums[key] == nil {
			sums[key] = &Holding{Where: key.Where, Before: key.Before}
		}
		sums[key].Bytes += bytes
		sums[key].N += n
	}
	rest := d.At(r.Start, []int{at})[0].Allocated
	alive := map[uint64]bool{}
	for _, l := range d.Lives() {
		if l.From <= at && at < l.To {
			alive[l.Address] = true
			add(Holding{Where: l.Where}, l.Size, 1)
			rest -= l.Size
		}
	}
	if at == len(d.Entries)-1 {
		for i := range d.Segments {
			for _, b := range d.Segments[i].Blocks {
				if b.State != Inactive && b.Where != 0 && (!alive[b.Address] || b.Address == 0) {
					add(Holding{Where: b.Where, Before: true}, b.Requested, 1)
					rest -= b.Requested
				}
			}
		}
	}
	if rest > 0 {
		add(Holding{Before: true}, rest, 0)
	}
	var list []Holding
	for _, h := range sums {
		list = append(list, *h)
	}
	return list
}
