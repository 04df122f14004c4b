// Package series is the table of what servers, hosts, and GPUs say of themselves while they
// run, whatever wrote it down: values over time, such as how many requests wait, and instants,
// such as a retraction. Formats fill a [Set] through a [Filler], one for each input:
//
//	f := opt.Series.Fill(in.Name)
//	server := f.Server(series.Server{Host: "node1", Name: "decode-0", Role: "decode"})
//	place := f.Place(series.Place{Server: server, Rank: rank, GPU: series.NoGPU})
//	queued := f.Series(series.Queued, place)
//	f.Add(queued, at, 12)
//	f.Instant(series.Instant{Time: at, Place: place, Kind: series.Retraction, Count: 3}, "...")
//
// What all inputs say of one metric of one place is one series: a log says how many requests
// run, and so do the metrics of the same server. [Set.Finish] puts local stamps on Unix time,
// and the samples in order; then reports read them with [Set.Each].
package series
