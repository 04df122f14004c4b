package lazyregexp

import "testing"

// In a test, an expression is compiled at once: a bad one does not wait for its first use.
func TestBadExpressionPanicsInTests(t *testing.T) {
	defer func() {
		if recover() == nil {
			t.Error("no panic")
		}
	}()
	New("(")
}
