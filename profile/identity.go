package profile

import "github.com/sgtrace/sgtrace/trace"

// An Identity is which rank of which host a profile is of, or one of its parts.
type Identity struct {
	Part     string // of a merged file, "" of others
	Rank     trace.Rank
	RankFrom string // what tells: "label", "header", "process", "name"; "" is nothing
	Host     string // "" is unknown
}
