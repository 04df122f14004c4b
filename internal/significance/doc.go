// Package significance reports whether a quantity differs between two captures, and by how much, where
// neighboring observations resemble each other.
//
// Spans of one batch share its time, requests that overlap share a queue, and steps that follow each other
// share their batch: a test that takes every observation for an independent one calls everything significant.
// So a capture is cut into pieces that are long compared with the correlation of neighbors, and the sum of a
// piece is one observation (the method of batch means: Schmeiser, Operations Research 30, 1982, which finds
// that more than 30 pieces gain nothing):
//
//  1. [Neighbors.Mean] and [Neighbors.Quantile] estimate a [Quantity] of each capture, and its error from the
//     scatter of the pieces.
//  2. compare combines two of them into the ratio after / before, an interval for it, and the probability of chance.
//  3. Where there are too few pieces to measure their scatter, compareFew compares them with an exact test.
//  4. [Holm] and [FalseDiscoveries] pay for asking many questions at once.
//
// It cannot know how much captures of the same thing differ from day to day.
package significance
