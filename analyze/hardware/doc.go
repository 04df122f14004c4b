// Package hardware says from metrics alone which GPU is slower than its peers, and why, which
// one reports errors, and which host is short of something.
//
// GPUs of one host that work run at one clock, unless something slows one of them down: heat, a
// limit of power, a brake. So a GPU is compared with the median of its peers at the same time, and
// only while both work: idle ones lower their clocks. Metrics are scraped every 15 s or so; nothing is
// reported that is shorter than a few scrapes, and times are those of scrapes.
//
// For hosts, node exporter counts what threads wait for, what the network loses, and what the kernel kills;
// cAdvisor counts how often a limit stops a pod. Findings say what part of the time that was, and since when.
// Whether requests wait for it is the subject of other findings.
package hardware
