package table

import (
	"go/version"
	"runtime"
	"testing"

	"github.com/bytedance/sonic"
)

// sonic has its own code for some processors and for the versions of Go that it
// supports. Elsewhere, it is encoding/json under another name, which works the same
// but takes longer. 'make fallback' runs the tests that way.
func TestSonicIsItself(t *testing.T) {
	const tag = "go1.28" // the first version that sonic 1.15.5 does not support, and the tag of 'make fallback'
	switch {
	case sonic.APIKind == sonic.UseSonicJSON:
	case runtime.GOARCH != "amd64" && runtime.GOARCH != "arm64":
		t.Skipf("sonic falls back to encoding/json on %s", runtime.GOARCH)
	case version.Compare(runtime.Version(), tag) < 0:
		t.Skip("sonic falls back to encoding/json, as a tag asked for")
	default:
		t.Errorf("sonic does not know %s and falls back to encoding/json: reports are right, and slower to write; 'go get github.com/bytedance/sonic@latest' may help", runtime.Version())
	}
}
