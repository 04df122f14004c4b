package profile

import "strings"

// elementBytes are the sizes of what collectives move, by the name of PyTorch's
// ScalarType. Exports of Nsight Systems count bytes.
var elementBytes = map[string]int64{
	"bytes": 1,
	"Byte":  1, "Char": 1, "Bool": 1,
	"Float8_e4m3fn": 1, "Float8_e5m2": 1, "Float8_e4m3fnuz": 1, "Float8_e5m2fnuz": 1, "Float8_e8m0fnu": 1,
	"Float4_e2m1fn_x2": 1, // two of four bits
	"Half":             2, "BFloat16": 2, "Short": 2, "UInt16": 2,
	"Float": 4, "Int": 4, "UInt32": 4, "ComplexHalf": 4,
	"Double": 8, "Long": 8, "UInt64": 8, "ComplexFloat": 8,
	"ComplexDouble": 16,
}

// A busRule says how much of its size an operation moves over the slowest link of
// each rank, as nccl-tests define it (doc/PERFORMANCE.md): times (n-1)/n of n ranks,
// or all.
type busRule struct {
	op    string // what its name begins with, in lower case, without underscores
	times float64
	// parts tells that the size is of the parts of all ranks together. What NCCL itself
	// counts, and exports have, is one rank's part.
	parts bool
}

var busRules = []busRule{
	{"allreduce", 2, false},
	{"allgather", 1, true},
	{"reducescatter", 1, true}, // before reduce
	{"alltoall", 1, true},
	{"gather", 1, true},
	{"scatter", 1, true},
	{"broadcast", 0, false},
	{"reduce", 0, false},
	{"send", 0, false}, // and sendrecv
	{"recv", 0, false},
}

// busRuleOf returns the rule for an operation, nil if there is none.
func busRuleOf(op string) *busRule {
	op = strings.ReplaceAll(strings.ToLower(op), "_", "")
	op = strings.TrimPrefix(strings.TrimPrefix(op, "nccl"), "coalesced")
	for i := range busRules {
		if strings.HasPrefix(op, busRules[i].op) {
			return &busRules[i]
		}
	}
	return nil
}

// CollectiveBytes returns the size of a collective in bytes, -1 if it is not known: what each
// rank has in the end, or had in the beginning, whichever is more.
func CollectiveBytes(op, dtype string, in, out int64, groupSize int32) int64 {
	bytes, n := elementBytes[dtype], max(in, out)
	if bytes == 0 || n < 0 {
		return -1
	}
	if min(in, out) < 0 {
		if rule := busRuleOf(op); rule != nil && rule.parts {
			if groupSize < 1 {
				return -1
			}
			n *= int64(groupSize)
		}
	}
	return n * bytes
}

// BusBytes returns how many bytes each rank of a collective of some bytes moves over its slowest link, as nccl-tests define
// it; 0 is unknown.
func BusBytes(op string, bytes int64, ranks int32) float64 {
	rule := busRuleOf(op)
	if rule == nil || bytes <= 0 || ranks < 2 {
		return 0
	}
	factor := 1.0
	if rule.times > 0 {
		factor = rule.times * float64(ranks-1) / float64(ranks)
	}
	return factor * float64(bytes)
}

// IsAllToAll reports whether a collective is an all-to-all.
func IsAllToAll(op string) bool {
	rule := busRuleOf(op)
	return rule != nil && rule.op == "alltoall"
}

// ElementBytes returns how large a number is that collectives move, by its type; 0 is unknown.
func ElementBytes(dtype string) int64 { return elementBytes[dtype] }
