package request

import (
	"slices"
	"testing"

	"github.com/sgtrace/sgtrace/trace"
)

// A gap in the step numbers means lost steps between the surrounding tokens. If the numbers don't increase, steps are counted instead.
func TestNumberSteps(t *testing.T) {
	for _, x := range []struct {
		name              string
		steps, want, lost []int32
	}{
		{"all there", []int32{NoStep, 0, 1, 2}, []int32{NoStep, 0, 1, 2}, []int32{0, 0, 0, 0}},
		{"two in the middle, and the first", []int32{NoStep, 1, 2, 5}, []int32{NoStep, 1, 2, 5}, []int32{0, 1, 0, 2}},
		{"before a prefill begins anew", []int32{NoStep, 0, NoStep, 2}, []int32{NoStep, 0, NoStep, 2}, []int32{0, 0, 0, 1}},
		{"no numbers", []int32{NoStep, 0, 0, 0}, []int32{NoStep, 0, 1, 2}, []int32{0, 0, 0, 0}},
		{"numbers that fall", []int32{0, 4, 3}, []int32{0, 1, 2}, []int32{0, 0, 0}},
	} {
		var list []Token
		for i, step := range x.steps {
			list = append(list, Token{End: trace.Time(i), Step: step})
		}
		numberSteps(list)
		var got, lost []int32
		for _, token := range list {
			got, lost = append(got, token.Step), append(lost, token.Lost)
		}
		if !slices.Equal(got, x.want) || !slices.Equal(lost, x.lost) {
			t.Errorf("%s: steps %v, lost %v; want %v, %v", x.name, got, lost, x.want, x.lost)
		}
	}
}
