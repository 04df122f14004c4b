package profile

// Names of the groups of rows that a merge draws: what each rank did, and, of all
// ranks, what they did at one time, which repeats rows of the former.
const (
	ByRank     = "By rank"
	SideBySide = "Side by side"
)
