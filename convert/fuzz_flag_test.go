package convert

import (
	"fmt"
	"strings"
	"testing"

	"github.com/sgtrace/sgtrace/convert/ranks"
)

// FuzzGivenRank parses ranks that users give for processes of exports. Printing and parsing a
// result gives it again.
func FuzzGivenRank(f *testing.F) {
	for _, text := range []string{"4100=TP3", "node1:4100=TP3-DP0", "pid4100=3", "::1:7=rank 2", "4100=node1", "4100", "=TP0", "0=1", "-5=TP0", "4100=node1/TP3", "+7=1"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		g, err := ranks.ParseGivenRank(text)
		if err != nil {
			if !strings.Contains(err.Error(), fmt.Sprintf("%q", text)) {
				t.Fatalf("%q: %v", text, err)
			}
			return
		}
		if g.PID <= 0 || g.Rank.Known() == 0 || !strings.Contains(text, fmt.Sprint(g.PID)) {
			t.Fatalf("%q is %+v", text, g)
		}
		again, err := ranks.ParseGivenRank(fmt.Sprintf("%s:%d=%v", g.Host, g.PID, g.Rank))
		if err != nil || again != g {
			t.Fatalf("%q is %+v, and then %+v, %v", text, g, again, err)
		}
	})
}
