// Package held finds what holds up requests on a server beside its load: it stands still between two batches, throws requests out of a full
// KV cache, or sends their KV caches too slowly.
package held
