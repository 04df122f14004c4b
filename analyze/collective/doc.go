// Package collective says who came last to the collectives of several ranks, how long the others waited,
// how long the data took, and why the late rank was late. Package straggler judges whether a late rank
// is a straggler. A [Chain] of collectives can be replayed with one rank as fast as its peers.
package collective
