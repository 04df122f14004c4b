// Package profilewalk reads the rows that profilers recorded in one pass and groups them by name, kind, and rank,
// within a window of time. It also joins launches to the work that they started, and recognizes steps. Packages
// kernel, gpu, and diff build on it. It never holds rows in memory: a group keeps 4 bytes per value (package
// distribution).
package profilewalk
