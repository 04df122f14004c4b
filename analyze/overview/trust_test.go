package overview

import (
	"strings"
	"testing"

	"github.com/sgtrace/sgtrace/trace"
)

// If part of the input was not read, the summary only vouches for what was read.
func TestTrustIsAboutWhatWasRead(t *testing.T) {
	o := &Overview{}
	o.Diags = &trace.Diags{}
	whole := o.trustText()
	o.Diags.Add(trace.InputUnread.Of("dump", 3, 4))
	if part := o.trustText(); part == whole || !strings.Contains(part, "what was read") {
		t.Errorf("%q of a part, %q of all", part, whole)
	}
}
