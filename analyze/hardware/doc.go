// Package hardware says from metrics alone which GPU is slower than its peers, and why, and which
// one reports errors.
//
// GPUs of one host that work run at one clock, unless something slows one of them down: heat, a
// limit of power, a brake. So a GPU is compared with the median of its peers at the same time, and
// only while both work: idle ones lower their clocks. Metrics are scraped every 15 s or so; what is
// shorter than a few scrapes is not said, and times are those of scrapes.
package hardware
