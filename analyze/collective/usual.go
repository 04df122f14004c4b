package collective

import (
	"slices"
	"strings"

	"github.com/sgtrace/sgtrace/request"
)

// What is usual for kernels of unknown size are those around each: the layers of a step send as
// much each, but steps do not.
const (
	// calledAround is how many kernels in a row are compared with each other.
	calledAround = 16
	// longOfUnknown is longTimes of kernels of unknown size: one in a step may have more to send.
	longOfUnknown = 16
)

// judgeAround finds the long ones among kernels of unknown size, which follow each other. What a
// library of collectives sends may have any size; other kernels, such as custom all-reduces, send
// so little that data alone makes none of them long.
func (p *partTimes) judgeAround(took []int64) {
	anySize := strings.Contains(strings.ToLower(p.Kernel), "nccl")
	if fewest := map[bool]int{false: fewestLong, true: calledAround}[anySize]; len(took) < fewest {
		return
	}
	var long []int // by position
	usual := map[int]int64{}
	sorted := make([]int64, 0, calledAround)
	for from := 0; from < len(took); from += calledAround {
		around := took[max(0, min(from, len(took)-calledAround)):min(from+calledAround, len(took))]
		sorted = append(sorted[:0], around...)
		slices.Sort(sorted)
		median := request.NearestRank(sorted, 50)
		for i := from; i < min(from+calledAround, len(took)); i++ {
			if p.isLong(took[i], median, longOfUnknown) {
				long, usual[i] = append(long, i), median
			}
		}
	}
	period := 0
	if anySize {
		period = periodOf(long, len(took))
	}
	for _, i := range long {
		if period == 0 {
			p.judge(took[i], usual[i], longOfUnknown)
			continue
		}
		sorted = sorted[:0]
		for k := i % period; k < len(took); k += period {
			sorted = append(sorted, took[k])
		}
		slices.Sort(sorted)
		p.judge(took[i], max(usual[i], request.NearestRank(sorted, 50)), longTimes)
	}
}

const (
	// fewestRounds is how often what is called must come again.
	fewestRounds = 3
	// comesAgain is the part of long kernels that have one a period later, and comesByChance how
	// many times the part that have one by chance that is at least.
	comesAgain    = 0.5
	comesByChance = 2
	// maxPeriods and maxAsked are how many periods are tried, and with how many kernels.
	maxPeriods, maxAsked = 4096, 512
)

// periodOf returns after how many of n kernels the long ones come again, as those do that send
// more than others in every step; 0 is never. long are the positions of these, in order.
func periodOf(long []int, n int) int {
	isLong := make([]bool, n)
	for _, i := range long {
		isLong[i] = true
	}
	asked := long[:min(len(long), maxAsked)]
	best, most := 0, max(comesAgain, comesByChance*float64(len(long))/float64(n))
	tried := map[int]bool{}
	for _, anchor := range []int{0, len(long) / 4, len(long) / 2} { // some are long by chance
		for k := anchor + 1; k < len(long) && len(tried) < maxPeriods; k++ {
			period := long[k] - long[anchor]
			if period > n/fewestRounds {
				break
			}
			if period < 2 || tried[period] {
				continue
			}
			tried[period] = true
			again, asks := 0, 0
			for _, i := range asked {
				if i+period < n {
					asks++
					if isLong[i+period] {
						again++
					}
				}
			}
			if part := float64(again) / float64(max(1, asks)); part > most || part == most && best == 0 {
				best, most = period, part
			}
		}
	}
	return best
}
