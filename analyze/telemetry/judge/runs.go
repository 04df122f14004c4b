package judge

// A Hit says whether something holds in a bucket.
type Hit struct {
	Bucket int
	Holds  bool
}

// Runs returns the runs of buckets in which something holds more often than not, and of which no part, and no longer run, does so by more
// buckets (Ruzzo and Tompa, 1999). It leaves out those in which it holds for a moment beside others.
func Runs(hits []Hit) (runs [][2]int) {
	type run struct{ from, to, left, right int } // places in hits, and by how many it held more often before it, and with it
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
			if n := len(runs) - 1; n >= 0 && run[0] <= runs[n][1] { // what is near both is one
				runs[n][1] = max(runs[n][1], run[1])
				continue
			}
			runs = append(runs, run)
		}
	}
	return runs
}

// near goes on from a hit to others that are a few places farther each.
func near(hits []Hit, at, step int) int {
	for k := at + step; k >= 0 && k < len(hits) && max(k-at, at-k) <= FewLimited; k += step {
		if hits[k].Holds {
			at = k
		}
	}
	return at
}
