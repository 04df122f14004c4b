// Package changepoint finds the moments at which a sequence of observations changed: the rate of arrivals, the
// share of one kind among them, or the level of a latency.
//
// A place is a change if the observations before and after it differ by more than chance allows, considering
// that the place was searched for, and how unsteady the sequence is anyway. Three things keep that honest:
//
//   - The search is paid for: the significance of the best of many places is that of a supremum (see
//     [supremum]), and that of the best of many windows is multiplied by their number.
//   - Neighboring observations resemble each other: requests that wait in one queue wait about as long. The
//     number of independent observations that a sequence is worth is measured from the residuals after the
//     change is removed, on both sides together and on each alone (see serial.go). If it is small, Student's t
//     takes the place of the normal distribution.
//   - The observations need not be normal: levels are compared by ranks (Mann-Whitney), rates and shares by
//     their likelihood.
//
// Several changes in one sequence are found by binary segmentation over seeded intervals (Kovács, Bühlmann, Li,
// Munk: Seeded binary segmentation, Biometrika 110, 2023): the best window is split, and both parts are
// searched again. Short windows see a short burst that the whole sequence would drown.
//
// The package knows indexes and numbers only; what they mean is up to the caller.
package changepoint
