package chart

import "strconv"

// Packed numbers are text for the script, which computes with them where a reader chooses a
// range of time. Each is digits of five bits, the lowest first, in the letters of base64;
// all but the last have the sixth bit, too. No number is negative.
const packedDigits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"

// appendPacked appends a number to packed ones.
func appendPacked(b []byte, v uint64) []byte {
	for ; v >= 32; v >>= 5 {
		b = append(b, packedDigits[32|v&31])
	}
	return append(b, packedDigits[v])
}

// Pack packs numbers, none of them negative.
func Pack(list []int64) string {
	var b []byte
	for _, v := range list {
		b = appendPacked(b, uint64(v))
	}
	return string(b)
}

// PackDurations packs durations in ns, ascending from 0 on, with what each is of: how far its
// reading is from the one before, then its owner. It is exact in what people read.
func PackDurations(sorted []int64, owners []int32) string {
	var b []byte
	last := uint64(0)
	for i, ns := range sorted {
		r := reading(ns)
		b = appendPacked(appendPacked(b, r-last), uint64(owners[i]))
		last = r
	}
	return string(b)
}

// Readings of a unit: 9,000 for each power of ten, of which four digits are read, and one
// for what is rounded up to the next: 1000us.
const (
	readings      = 3*9000 + 1
	readingsOfSec = 4*9000 + 1
)

// reading numbers durations, in ns, by how [trace.FormatDuration] prints them: those that it
// prints alike have one number, and longer ones larger numbers.
func reading(ns int64) uint64 {
	from := uint64(1000)
	switch {
	case ns < 1e3:
		return uint64(ns)
	case ns < 1e6:
		return from + fourDigits(float64(ns)/1e3)
	case ns < 1e9:
		return from + readings + fourDigits(float64(ns)/1e6)
	case ns < 1e13:
		return from + 2*readings + fourDigits(float64(ns)/1e9)
	}
	return from + 2*readings + readingsOfSec + uint64(ns/1e9-1e4)
}

// fourDigits numbers the values from 1 on by their first four digits, rounded.
func fourDigits(v float64) uint64 {
	text := strconv.FormatFloat(v, 'e', 3, 64) // d.ddde+dd
	first, _ := strconv.ParseUint(text[:1]+text[2:5], 10, 64)
	power, _ := strconv.ParseUint(text[7:], 10, 64)
	return 9000*power + first - 1000
}
