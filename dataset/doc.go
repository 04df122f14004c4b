// Package dataset keeps what inputs hold on a disk, as tables in Parquet files that any SQL
// engine reads: what the readers of formats made of an input, before anything is decided that
// needs another input. docs/DATASET.md describes the tables, column by column.
//
// A folder has one [Capture] for each input:
//
//	DATASET/v1/capture=<place>-<hash>/<table>-*.parquet
//
// Whoever reads a capture gets what the reader of its format gave, in the same order, so that
// all that is decided and printed later is the same. Arguments that no report reads are not
// kept: timelines open the originals for these, which captures name.
package dataset
