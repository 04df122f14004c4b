package rows

// Ids of processes and threads are packed into 64 bits: 8 bits of hardware, 8 of
// a virtual machine, 24 of the pid, 24 of the tid. SQLite stores them as signed
// numbers, but the sign is part of the hardware.
const (
	idBits = 24
	idMask = 1<<idBits - 1
	// noID is the value of a column that has none; no id of the file is -1, since a
	// thread 0xFFFFFF of a process 0xFFFFFF does not exist.
	noID = -1
)

// pidOf returns the process of a packed id, -1 if the id is missing or stands for
// a whole machine.
func pidOf(id int64) int32 {
	if id == noID || uint64(id)<<16 == 0 {
		return -1
	}
	return int32(id >> idBits & idMask)
}

// tidOf returns the thread of a packed id, -1 if it is missing.
func tidOf(id int64) int32 {
	if id == noID || uint64(id)<<16 == 0 {
		return -1
	}
	return int32(id & idMask)
}
