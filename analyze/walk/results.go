package walk

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/sgtrace/sgtrace/profile"
)

// Results counts what calls of one name returned. The zero value has none.
type Results struct {
	Known  int64           // calls whose result was recorded
	failed map[int32]int64 // by result; nil is none
}

// Add counts a call that returned result, which may be [profile.UnknownResult].
func (r *Results) Add(result int32) {
	if result == profile.UnknownResult {
		return
	}
	r.Known++
	if !profile.Failed(result) {
		return
	}
	if r.failed == nil {
		r.failed = map[int32]int64{}
	}
	r.failed[result]++
}

// Merge adds the counts of o.
func (r *Results) Merge(o *Results) {
	r.Known += o.Known
	if r.failed == nil && len(o.failed) > 0 {
		r.failed = map[int32]int64{}
	}
	for result, n := range o.failed {
		r.failed[result] += n
	}
}

// Failed returns how many calls failed; -1 is unknown.
func (r *Results) Failed() int64 {
	if r.Known == 0 {
		return -1
	}
	n := int64(0)
	for _, k := range r.failed {
		n += k
	}
	return n
}

// Errors returns what the calls that failed returned, the most frequent first.
func (r *Results) Errors() []int32 {
	return slices.SortedFunc(maps.Keys(r.failed), func(a, b int32) int {
		return cmp.Or(cmp.Compare(r.failed[b], r.failed[a]), cmp.Compare(a, b))
	})
}

// String lists how many calls failed with which error, the most frequent first:
// "558 cudaErrorLaunchOutOfResources (701)".
func (r *Results) String() string {
	var list []string
	for _, result := range r.Errors() {
		list = append(list, fmt.Sprintf("%d %s", r.failed[result], ErrorName(result)))
	}
	return strings.Join(list, ", ")
}

// ErrorName names what a call returned, with its number: "cudaErrorLaunchOutOfResources (701)".
func ErrorName(result int32) string {
	return fmt.Sprintf("%s (%d)", profile.ResultName(result), result)
}
