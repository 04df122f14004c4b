package profile

// Names of the groups of rows that a timeline has beside those of requests: what stands
// out and how busy servers were, what each rank did, and, of all ranks, what they did at
// one time, which repeats rows of the former; and what logs and metrics say. A viewer sorts groups by name, so that a
// blank puts a group in front.
const (
	Findings   = " Findings"
	Load       = " Load"
	ByRank     = "By rank"
	SideBySide = "Side by side"
	Logged     = "Logs and metrics"
)
