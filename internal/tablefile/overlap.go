package tablefile

import (
	"math"

	"github.com/parquet-go/parquet-go"
)

// Overlapping returns the rows, from first to before end, among which are all that overlap
// [from, to] in time, by what the file says of its pages; 0 is no bound. start and length are the
// columns with the time and the length of each row, by their places in Columns. These are all
// rows of a file that says nothing about its pages.
func (f *File) Overlapping(start, length int, from, to int64) (first, end int64) {
	first, end = f.Rows(), 0
	row := int64(0) // of the group
	for _, group := range f.content.RowGroups() {
		chunks := group.ColumnChunks()
		pages, err := pagesOf(chunks[f.columns[start].leaf], group.NumRows())
		if err != nil {
			return 0, f.Rows()
		}
		longest, err := longestOf(chunks[f.columns[length].leaf], group.NumRows())
		if err != nil {
			return 0, f.Rows()
		}
		for _, p := range pages {
			latest := p.most + longest
			if latest < p.most {
				latest = math.MaxInt64
			}
			if (from == 0 || latest >= from) && (to == 0 || p.least <= to) {
				first, end = min(first, row+p.first), max(end, row+p.end)
			}
		}
		row += group.NumRows()
	}
	return min(first, end), end
}

// pageBounds are the bounds of a page's values, and of its rows in its group.
type pageBounds struct{ least, most, first, end int64 }

// pagesOf returns the pages of a column in a group of so many rows; a page without values has no
// bounds.
func pagesOf(c parquet.ColumnChunk, rows int64) (list []pageBounds, err error) {
	defer recovered(&err)
	values, err := c.ColumnIndex()
	if err != nil {
		return nil, err
	}
	places, err := c.OffsetIndex()
	if err != nil {
		return nil, err
	}
	for i := range values.NumPages() {
		p := pageBounds{math.MinInt64, math.MaxInt64, places.FirstRowIndex(i), rows}
		if !values.NullPage(i) {
			p.least, p.most = values.MinValue(i).Int64(), values.MaxValue(i).Int64()
		}
		if i+1 < places.NumPages() {
			p.end = places.FirstRowIndex(i + 1)
		}
		list = append(list, p)
	}
	return list, nil
}

// longestOf returns the largest value of a column in a group.
func longestOf(c parquet.ColumnChunk, rows int64) (longest int64, err error) {
	pages, err := pagesOf(c, rows)
	for _, p := range pages {
		longest = max(longest, p.most)
	}
	return longest, err
}
