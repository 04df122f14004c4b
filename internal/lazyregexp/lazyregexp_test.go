package lazyregexp

import "testing"

// Within tests, an expression is compiled at once, so that a bad one panics before its first use.
func TestBadExpressionPanicsInTests(t *testing.T) {
	defer func() {
		if recover() == nil {
			t.Error("no panic")
		}
	}()
	New("(")
}
