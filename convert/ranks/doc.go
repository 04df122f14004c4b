// Package ranks decides which recording is of which rank: by what files say of
// themselves, by their names, by the schedulers of the requests, and by what two
// profilers both recorded. It finds repeated captures and the duplicates that two
// profilers of one process recorded, once, for timelines and reports alike.
package ranks
