// Package walk passes over the rows that profilers recorded, once, and groups them: by
// name, kind and rank, within a window of time; joins launches to what they started;
// and recognizes steps. Packages kernel, gpu and diff build on it. Rows are never held:
// a group keeps 4 bytes a value (package distribution).
package walk
