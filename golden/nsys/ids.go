package nsys

// machine is the part of an id that says on which machine a process runs: the
// first virtual machine of no special hardware, in all exports that are known.
const machine = 1 << 48

// GlobalVID is the id of the machine.
func GlobalVID() int64 { return machine }

// GlobalPID is the id of a process.
func GlobalPID(pid int) int64 { return machine | int64(pid)<<24 }

// GlobalTID is the id of a thread.
func GlobalTID(pid, tid int) int64 { return GlobalPID(pid) | int64(tid) }
