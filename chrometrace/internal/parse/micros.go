package parse

import (
	"math"

	"github.com/sgtrace/sgtrace/trace"
)

// AbsoluteFrom is the smallest time, in ns, that counts from 1970: 1e14 us, in 1973. Relative times stay below
// 1e13 us, since Kineto moves its base every quarter of a year; those of a file that spans more than three
// years would be misread.
const AbsoluteFrom trace.Time = 1e17

// Times beyond maxTime (the year 2116) and durations beyond theirs are invalid: their sums might not fit in 64
// bits.
const (
	maxTime trace.Time = 1 << 62
	maxDur             = 4e18
)

// IsTime reports whether sums of t and of a duration fit into 64 bits.
func IsTime(t trace.Time) bool { return -maxTime <= t && t <= maxTime }

// micros parses the number of microseconds at b[i] as nanoseconds, exactly; it rounds smaller fractions half
// away from zero. ok is false if there is no number, or if it is out of range. next is after the digits.
//
// Times never go through a float64: at 1.7e15 us it has a step of 250 ns.
func micros(b []byte, i int) (ns int64, next int, ok bool) {
	start := i
	neg := i < len(b) && b[i] == '-'
	if neg {
		i++
	}
	var u uint64
	digits := i
	for i < len(b) && b[i]-'0' <= 9 {
		u = u*10 + uint64(b[i]-'0')
		i++
	}
	whole := i - digits
	if whole == 0 || whole > 15+1 {
		return slowMicros(b, start)
	}
	if i+1 < len(b) && b[i] == '.' {
		fraction := i + 1
		i++
		for i < len(b) && b[i]-'0' <= 9 && i < fraction+3 {
			u = u*10 + uint64(b[i]-'0')
			i++
		}
		u *= powers[3-(i-fraction)]
		if i == fraction {
			return slowMicros(b, start)
		}
	} else {
		u *= 1000
	}
	if i < len(b) && (b[i]-'0' <= 9 || b[i]|0x20 == 'e' || b[i] == '.') || u > math.MaxInt64 {
		return slowMicros(b, start)
	}
	if neg {
		return -int64(u), i, true
	}
	return int64(u), i, true
}

var powers = [...]uint64{1, 10, 100, 1000}

// slowMicros is micros for exponents and for more digits than nanoseconds need.
func slowMicros(b []byte, i int) (ns int64, next int, ok bool) {
	neg := i < len(b) && b[i] == '-'
	if neg {
		i++
	}
	var digits []byte
	point, seen := 0, false // point: number of digits before it
	for ; i < len(b); i++ {
		switch c := b[i]; {
		case c-'0' <= 9:
			digits = append(digits, c-'0')
			if !seen {
				point++
			}
			continue
		case c == '.' && !seen:
			seen = true
			continue
		}
		break
	}
	if point == 0 {
		return 0, i, false
	}
	exp := 0
	if i < len(b) && b[i]|0x20 == 'e' {
		if exp, i, ok = decimalExponent(b, i+1); !ok {
			return 0, i, false
		}
	}
	u, ok := scaled(digits, point+exp+3)
	if neg {
		return -u, i, ok
	}
	return u, i, ok
}

// decimalExponent parses the exponent at b[i], and clamps it to a size at which the number is 0 or out of
// range.
func decimalExponent(b []byte, i int) (exp, next int, ok bool) {
	neg := i < len(b) && b[i] == '-'
	if neg || i < len(b) && b[i] == '+' {
		i++
	}
	start := i
	for ; i < len(b) && b[i]-'0' <= 9; i++ {
		exp = min(exp*10+int(b[i]-'0'), 1<<20)
	}
	if neg {
		exp = -exp
	}
	return exp, i, i > start
}

// scaled returns the number whose first n digits are before the point, rounded half up.
func scaled(digits []byte, n int) (v int64, ok bool) {
	for i := range n {
		d := int64(0)
		if i < len(digits) {
			d = int64(digits[i])
		} else if v == 0 {
			return 0, true
		}
		if v > (math.MaxInt64-d)/10 {
			return 0, false
		}
		v = v*10 + d
	}
	if n >= 0 && n < len(digits) && digits[n] >= 5 {
		if v == math.MaxInt64 {
			return 0, false
		}
		v++
	}
	return v, true
}
