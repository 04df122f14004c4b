package perfetto

// digitBits is the width of a radix digit: its 2048 counters fit into the L1
// cache together with the streams being read and written.
const digitBits = 11

// sortByTime sorts events by time, keeping the order of equal times: one pass
// of counting per digit, lowest first. Digits in which all times agree are
// skipped, so events of one window cost two or three passes. other is scratch
// space with room for as many; the result is in one of the two.
func sortByTime(events, other []event) (sorted, scratch []event) {
	if len(events) == 0 {
		return events, other
	}
	other = other[:len(events)]
	var differ uint64
	for i := range events {
		differ |= events[i].time ^ events[0].time
	}
	for shift := 0; differ>>shift != 0; shift += digitBits {
		if differ>>shift&(1<<digitBits-1) == 0 {
			continue
		}
		var at [1 << digitBits]uint32
		for i := range events {
			at[events[i].time>>shift&(1<<digitBits-1)]++
		}
		var sum uint32
		for d, n := range at {
			at[d] = sum
			sum += n
		}
		for i := range events {
			d := events[i].time >> shift & (1<<digitBits - 1)
			other[at[d]] = events[i]
			at[d]++
		}
		events, other = other, events
	}
	return events, other
}
