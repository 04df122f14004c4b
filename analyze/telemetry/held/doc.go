// Package held finds what holds up requests on a server besides its load: the server stalls between two batches,
// throws requests out of a full KV cache, or sends KV caches too slowly. It also finds what keeps requests waiting at
// the last of few lines or scrapes, which show no course over time.
package held
