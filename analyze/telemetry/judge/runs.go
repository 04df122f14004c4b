package judge

// A Hit says whether something holds in a bucket.
type Hit struct {
	Bucket int
	Holds  bool
}

// Runs returns the maximal runs of buckets in which something holds more often than not: the maximal scoring
// subsequences of Ruzzo and Tompa (1999). It leaves out short runs if there are longer ones.
func Runs(hits []Hit) (runs [][2]int) {
	type run struct{ from, to, left, right int } // range in hits; number of hits minus misses before it, and including it
	var list []run
	sum, most := 0, 0
	for i, h := range hits {
		if !h.Holds {
			sum--
			continue
		}
		x := run{i, i, sum, sum + 1}
		sum++
		for {
			k := len(list) - 1
			for k >= 0 && list[k].left >= x.left {
				k--
			}
			if k < 0 || list[k].right >= x.right {
				break
			}
			x.from, x.left = list[k].from, list[k].left
			list = list[:k]
		}
		list = append(list, x)
		most = max(most, x.right-x.left)
	}
	for _, x := range list {
		if x.right-x.left >= min(FewLimited, most) {
			run := [2]int{hits[near(hits, x.from, -1)].Bucket, hits[near(hits, x.to, 1)].Bucket}
			if n := len(runs) - 1; n >= 0 && run[0] <= runs[n][1] { // hits near both runs make them one
				runs[n][1] = max(runs[n][1], run[1])
				continue
			}
			runs = append(runs, run)
		}
	}
	return runs
}

// near moves from a hit to further hits, each at most FewLimited buckets away.
func near(hits []Hit, at, step int) int {
	for k := at + step; k >= 0 && k < len(hits) && max(k-at, at-k) <= FewLimited; k += step {
		if hits[k].Holds {
			at = k
		}
	}
	return at
}
