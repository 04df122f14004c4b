package document

import (
	"fmt"
	"strings"
	"testing"

	"github.com/sgtrace/sgtrace/analyze/finding"
	"github.com/sgtrace/sgtrace/analyze/place"
	"github.com/sgtrace/sgtrace/request"
	"github.com/sgtrace/sgtrace/trace"
)

// Several findings that together cover all ranks of a rack or host say so. A single
// finding that names them already does not.
func TestTell(t *testing.T) {
	hosts, err := ReadHosts(strings.NewReader(hostFile), "hosts.csv")
	if err != nil {
		t.Fatal(err)
	}
	at := func(host int, tp int16) place.Location {
		return place.Location{Scope: place.OneRank, Role: request.Decode, Host: fmt.Sprintf("node%d", host), Rank: trace.Rank{TP: tp, PP: -1, DP: -1, EP: -1, Global: -1}}
	}
	var ranks []Rank
	for host := range 4 {
		for tp := range int16(2) {
			where := at(host, tp)
			ranks = append(ranks, Rank{where.String(), where.Host, where})
		}
	}
	found := []finding.Finding{
		{Kind: finding.Slower, At: at(0, -1)}, {Kind: finding.Slower, At: at(1, -1)}, // the servers of rack r1
		{Kind: finding.Straggler, At: at(2, 0)}, {Kind: finding.Straggler, At: at(2, 1)}, {Kind: finding.Straggler, At: at(3, 1)},
		{Kind: finding.Lifecycle, At: at(3, -1)}, {Kind: finding.Load},
	}
	hosts.Annotate(found, ranks)
	var got []string
	for i := range found {
		got = append(got, strings.Join(finding.Sentences(found[i].Evidence), "; "))
	}
	const rack, host, hosts2 = "all 4 ranks of rack r1 are slow", "all 2 ranks of node2 are late", "all 2 hosts of rack r2 have a rank that is late"
	if want := strings.Join([]string{rack, rack, hosts2 + "; " + host, hosts2 + "; " + host, hosts2, "", ""}, "|"); strings.Join(got, "|") != want {
		t.Errorf("findings say %q, want %q", got, want)
	}
	(*Hosts)(nil).Annotate(found, ranks)
	if n := len(found[0].Evidence); n != 1 {
		t.Errorf("without groups, %d sentences", n)
	}
	groups := hosts.Covered([]place.Location{at(2, -1), at(3, -1)}, ranks)
	if len(groups) != 1 || groups[0].String() != "all 4 ranks of rack r2" {
		t.Errorf("two servers are %v", groups)
	}
}
