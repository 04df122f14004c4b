package naming

import (
	"cmp"
	"path/filepath"
	"strconv"
	"strings"
)

// A Process is what inputs tell about a process of which no rank is known.
type Process struct {
	Name string // "python3"; "" is unknown
	PID  int64  // 0 is unknown
	Host string // as the input calls it; "" is unknown
	File string // that it was recorded in
}

// Processes names processes of which no rank is known: "python3 111". The host goes before
// processes that are called alike on several hosts, "node7 python3 111". The file follows
// where that does not tell them apart, either: "python3 of run2". Processes of which all of
// this is equal have equal names.
func (n *Names) Processes(all []Process) []string {
	names := make([]string, len(all))
	for i, p := range all {
		names[i] = cmp.Or(p.Name, "process")
		if p.PID != 0 {
			names[i] += " " + strconv.FormatInt(p.PID, 10)
		}
	}
	tellApart(names, func(i int) string {
		if all[i].Host == "" {
			return names[i]
		}
		return n.Host(all[i].Host) + " " + names[i]
	})
	tellApart(names, func(i int) string { return names[i] + " of " + File(all[i].File) })
	return names
}

// tellApart gives those that have one name longer ones, if these differ.
func tellApart(names []string, longer func(i int) string) {
	alike := map[string][]int{}
	for i, name := range names {
		alike[name] = append(alike[name], i)
	}
	for _, list := range alike {
		long, differ := make([]string, len(list)), false
		for k, i := range list {
			long[k] = longer(i)
			differ = differ || long[k] != long[0]
		}
		for k, i := range list {
			if differ {
				names[i] = long[k]
			}
		}
	}
}

// File names a file: without folders, and without what all recordings end in.
func File(path string) string {
	name := filepath.Base(path)
	for _, suffix := range []string{".gz", ".zst", ".json", ".trace", ".pt", ".sqlite"} {
		name = strings.TrimSuffix(name, suffix)
	}
	return name
}
