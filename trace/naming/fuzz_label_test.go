package naming

import (
	"strings"
	"testing"

	"github.com/sgtrace/sgtrace/trace"
)

// FuzzLabel parses labels that users give for files: label and path make up the argument, printing
// and parsing a host and a rank gives them again, and if a file with the whole name exists, there
// is no label.
func FuzzLabel(f *testing.F) {
	for _, arg := range []string{"node1=a.json", "TP3-DP0=a", "rank 7=a", "node1/TP3=a/b", "lr=3.json", "=a", "a=", "7/TP0=x", "TP1-TP2=a", "a/b=c", `C:\x=y`,
		"99999999999=a", "TP99999=a", "tp+1=a", " TP3 =a", "a==b"} {
		f.Add(arg)
	}
	f.Fuzz(func(t *testing.T, arg string) {
		label, path := SplitLabel(arg, nil)
		if label != "" && label+"="+path != arg || label == "" && path != arg {
			t.Fatalf("%q is split into %q and %q", arg, label, path)
		}
		if l, p := SplitLabel(arg, func(string) bool { return true }); l != "" || p != arg {
			t.Fatalf("%q is a file, and split into %q and %q", arg, l, p)
		}
		host, rank, err := ParseLabel(label)
		if err != nil {
			if host != "" || rank != trace.NoRank || label != "" && !strings.HasPrefix(err.Error(), "label ") {
				t.Fatalf("%q: %q, %v, %v", label, host, rank, err)
			}
			return
		}
		if host == "" && rank == trace.NoRank || !strings.Contains(label, host) || host != strings.TrimSpace(host) {
			t.Fatalf("label %q is host %q, rank %v", label, host, rank)
		}
		printed := strings.Trim(host+"/"+rank.String(), "/")
		if host2, rank2, err := ParseLabel(printed); host2 != host || rank2 != rank || err != nil {
			t.Fatalf("label %q is printed as %q, which is host %q, rank %+v, want %+v; %v", label, printed, host2, rank2, rank, err)
		}
	})
}
