// Package significance reports whether a quantity differs between two captures, and
// by how much, where neighboring observations resemble each other.
//
// Spans of one batch share its time, requests that overlap share a queue, and steps
// that follow each other share their batch: a test that takes every observation for an
// independent one calls everything significant. So a capture is cut into pieces, which
// are long against what makes neighbors alike, and what a piece adds up to is one
// observation (the method of batch means: Schmeiser, Operations Research 30, 1982,
// which finds that more than 30 pieces gain nothing):
//
//  1. [Neighbors.Mean] and [Neighbors.Quantile] estimate a [Quantity] of each capture, and by the scatter of its
//     pieces how far off it may be.
//  2. compare puts two of them together to the ratio after / before, an interval for
//     it, and the probability that it is chance.
//  3. Where there are so few pieces that their scatter tells little, compareFew compares
//     them with an exact test.
//  4. [Holm] and [FalseDiscoveries] pay for having asked many questions at once.
//
// What it cannot know is how much captures of the same thing differ from day to day.
package significance
