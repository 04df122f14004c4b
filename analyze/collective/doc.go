// Package collective says who came last to the collectives of several ranks, how long
// the others waited, how long the data took, and why the late rank was late. Whether a
// late rank is a straggler is judged by package straggler. A [Chain] of collectives is played
// again with one rank at the level of its peers.
package collective
