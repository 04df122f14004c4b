// Package series is the table of what servers, hosts, and GPUs report about themselves while they run,
// whatever recorded it: values over time, such as the number of waiting requests, and instants, such as a
// retraction. Formats fill a [Set] through a [Filler], one for each input:
//
//	f := opt.Series.Fill(in.Name)
//	server := f.Server(series.Server{Host: "node1", Name: "decode-0", Role: "decode"})
//	place := f.Place(series.Place{Server: server, Rank: rank, GPU: series.NoGPU})
//	queued := f.Series(series.Queued, place)
//	f.Add(queued, at, 12)
//	f.Instant(series.Instant{Time: at, Place: place, Kind: series.Retraction, Count: 3}, "...")
//
// All inputs that report one metric of one place contribute to one series: both a log and the metrics
// of the same server report the number of running requests. [Set.Finish] converts local stamps to Unix
// time and sorts the samples; then reports read them with [Set.Each].
package series
