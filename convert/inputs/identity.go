package inputs

import (
	"github.com/sgtrace/sgtrace/internal/order"
	"github.com/sgtrace/sgtrace/profile"
	"github.com/sgtrace/sgtrace/trace"
	"github.com/sgtrace/sgtrace/trace/naming"
)

// Identities finds out which ranks the parts of each profile of an input are, by itself.
func (x *Source) Identities() (all [][]profile.Identity) {
	for _, p := range x.Content.Profiles {
		f := &ProcessProfile{Profile: p, Source: x}
		if !x.Format.Machine {
			f = NewProcessProfile(p, x)
		}
		parts := order.Each(f.Parts(), func(name string) profile.Identity { return identify(f, name) })
		all = append(all, parts)
	}
	return all
}

// identify finds out which rank a part of a file is, by itself: other files may tell
// more.
func identify(f *ProcessProfile, part string) profile.Identity {
	all, _ := naming.Resolve([]naming.Input{f.Describe(part)})
	known := &all[0]
	is := profile.Identity{Part: part, Rank: known.Rank, RankFrom: known.From, Host: known.Host}
	if is.Rank == trace.NoRank && len(f.Meta.Hints) > 0 {
		is.Rank.Global, is.RankFrom = f.Meta.Hints[0].Rank, f.Meta.Hints[0].From
	}
	return is
}
