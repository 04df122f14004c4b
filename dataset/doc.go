// Package dataset stores the content of inputs on disk, as tables in Parquet files that any SQL engine can
// read: what the formats' readers made of an input, before any decision that needs another input.
// docs/DATASET.md describes the tables, column by column.
//
// A folder has one [Capture] for each input:
//
//	DATASET/v1/capture=<place>-<hash>/<table>-*.parquet
//
// Reading a capture returns what the reader of its format returned, in the same order, so that all later
// decisions and output are the same. Arguments that no report reads are not stored: for these, timelines
// open the originals, whose paths are in the captures.
package dataset
