// Package ncclinspector reads what NCCL's Inspector writes (NCCL 2.28 and later,
// plugins/profiler/inspector): a line of JSON for each collective that ended on a rank, with its
// communicator, its number, its size, how long its kernel took, and the bandwidth. A server may
// write such logs for weeks. They are recordings of collectives and of nothing else.
//
// # What is odd
//
//   - Only with NCCL_INSPECTOR_DUMP_VERBOSE=1 a record says when its collective was. Otherwise it says when
//     it was written, which may be at the end of the program: the collective had ended by then.
//   - The number of a collective counts those of one kind in a communicator: #7 of AllReduce is another
//     one than #7 of AllGather.
//   - The size is that of NCCL's count: of an AllGather, what one rank brings, and of a ReduceScatter, what
//     one rank gets.
//   - Collectives below 8 KiB are left out (NCCL_INSPECTOR_DUMP_MIN_SIZE_BYTES), and those that a full ring
//     had no place for. Nobody counts either.
//   - What has not ended is not there: in a hang, the logs show when it began, and not who is missing.
//   - The rank is that in the communicator. The largest communicator tells most of the job.
//   - "collective_cpu" times are from the call until its end, with all that was queued before it. Such a
//     collective is drawn, and not compared.
package ncclinspector
