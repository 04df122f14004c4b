package request

import "strings"

// flagWords are the words that reports print.
var flagWords = []struct {
	flag Flags
	word string
}{
	{RIDCollision, "rid-collision"},
	{RoomCollision, "room-collision"},
	{Unjoined, "unjoined"},
	{MissingRoot, "missing-root"},
	{MissingThread, "missing-thread"},
	{DerivedTTFT, "derived-ttft"},
	{SharedGateway, "shared-gateway"},
	{MissingRows, "missing-spans"},
}

// AllFlags is everything that can be doubtful.
const AllFlags = RIDCollision | RoomCollision | Unjoined | MissingRoot | MissingThread | DerivedTTFT | SharedGateway | MissingRows

// Words returns the words of f that reports print.
func (f Flags) Words() []string {
	var words []string
	for _, w := range flagWords {
		if f&w.flag != 0 {
			words = append(words, w.word)
		}
	}
	return words
}

// String lists the words of f.
func (f Flags) String() string { return strings.Join(f.Words(), ",") }
