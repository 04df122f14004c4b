// Package profilewalk reads the rows that profilers recorded in one pass and groups them by
// name, kind and rank, within a window of time. It also joins launches to what they started,
// and recognizes steps. Packages kernel, gpu and diff build on it. Rows are never held:
// a group keeps 4 bytes a value (package distribution).
package profilewalk
