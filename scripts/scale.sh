#!/bin/bash
# Shows that many processes make one dataset: simulates a run of many ranks, extracts it as an array job
# of a real Slurm, some tasks of which are killed, and compares what is printed of the dataset with what
# is printed of the files, and with what real SQL engines say: bash scripts/scale.sh CACHE [RANKS]
#
# Slurm is a cluster of one node, started as an ordinary user would run any program: from Debian's
# packages, unpacked into CACHE. Nothing is installed, and all else that it writes is in a temporary
# folder. Where the packages cannot be had, it is skipped, which is said.
set -euo pipefail
cache=$1 ranks=${2:-64} # a multiple of 8
repository=$PWD
dir=$(mktemp -d "${TMPDIR:-/tmp}/scale-XXXXXX")
trap 'rm -rf "$dir"' EXIT

say() { echo "scale: $*"; }
fail() { say "$*" >&2 && exit 1; }
unavailable() { say "SKIPPED: cannot get Slurm: $*" && exit 3; }

# attend waits for a command to succeed, at most half a minute.
attend() {
	for _ in {1..300}; do
		"$@" && return
		sleep 0.1
	done
	return 1
}

# unpack downloads the packages and unpacks them, once: the daemons, the commands, and what they need
# beyond a minimal Debian.
unpack() {
	[ -e "$cache/slurm/unpacked" ] && return
	mkdir -p "$cache/slurm/root" && cd "$cache/slurm"
	said=$(apt-get -o Acquire::http::Timeout=20 -o Acquire::Retries=0 download slurmctld slurmd slurm-client \
		slurm-wlm-basic-plugins munge libmunge2 libhwloc15 liblua5.1-0 2>&1) || unavailable "${said##*$'\n'}"
	for deb in *.deb; do
		dpkg -x "$deb" root || unavailable "dpkg -x $deb"
	done
	touch unpacked
	cd "$dir"
}

# free_port prints a port that nobody listens on.
free_port() {
	while port=$(shuf -n 1 -i 20000-29999) && (: </dev/tcp/127.0.0.1/"$port") 2>/dev/null; do :; done
	echo "$port"
}

# configure writes the key of munge and slurm.conf. The scheduler looks at its queue twice a second; that
# of a real cluster takes more time, and has more nodes.
configure() {
	mkdir -p "$slurm"/{munge,spool,state}
	head -c 1024 /dev/urandom >"$slurm/munge.key"
	chmod 400 "$slurm/munge.key"
	host=$(hostname -s)
	cat >"$SLURM_CONF" <<END
ClusterName=scale
SlurmctldHost=$host(127.0.0.1)
SlurmctldPort=$(free_port)
SlurmdPort=$(free_port)
SlurmUser=$(id -un)
SlurmdUser=$(id -un)
AuthType=auth/munge
AuthInfo=socket=$slurm/munge/socket
CryptoType=crypto/munge
PluginDir=$plugins
StateSaveLocation=$slurm/state
SlurmdSpoolDir=$slurm/spool
SlurmctldPidFile=$slurm/slurmctld.pid
SlurmdPidFile=$slurm/slurmd.pid
SlurmctldLogFile=$slurm/slurmctld.log
SlurmdLogFile=$slurm/slurmd.log
ProctrackType=proctrack/pgid
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
MpiDefault=none
SwitchType=switch/none
ReturnToService=2
JobRequeue=1
MaxArraySize=10001
SchedulerParameters=batch_sched_delay=0,sched_min_interval=200000,sched_interval=1
NodeName=$host NodeAddr=127.0.0.1 CPUs=$(nproc) State=UNKNOWN
PartitionName=all Nodes=$host Default=YES MaxTime=INFINITE State=UP
END
}

# daemon starts a program of the packages in the foreground of a job.
daemons=()
daemon() {
	(cd "$slurm" && exec "$root/usr/sbin/$1" "${@:2}" >"$slurm/$1.out" 2>&1) &
	daemons+=($!)
}

# start starts the cluster, and returns when its node is idle.
start() {
	daemon munged --foreground --force --key-file="$slurm/munge.key" --socket="$slurm/munge/socket" \
		--pid-file="$slurm/munge/pid" --log-file="$slurm/munge/log" --seed-file="$slurm/munge/seed"
	attend [ -e "$slurm/munge/socket" ] || unavailable "munged has no socket: $(tail -n 1 "$slurm/munged.out")"
	daemon slurmctld-wlm -D -c -f "$SLURM_CONF"
	daemon slurmd-wlm -D -c -f "$SLURM_CONF" -d "$root/usr/sbin/slurmstepd-wlm"
	attend idle || unavailable "the node does not come up: $(tail -n 1 "$slurm/slurmctld.log")"
}

idle() { [ "$(sinfo --noheader --format=%T 2>/dev/null)" = idle ]; }

stop() {
	kill "${daemons[@]}" || true
	sleep 2 && kill -9 "${daemons[@]}" || true
} 2>/dev/null

# under_slurm extracts in one task for each rank, twice: in the first round every third one is killed while
# it works, after a random time. A job that depends on the second round prints the report.
under_slurm() {
	slurm=$dir/slurm root=$cache/slurm/root
	lib=$root/usr/lib/$(uname -m)-linux-gnu
	plugins=$lib/slurm-wlm
	export SLURM_CONF=$slurm/slurm.conf LD_LIBRARY_PATH=$lib:$plugins PATH=$root/usr/bin:$PATH RANKS=$ranks
	unpack
	configure
	trap stop EXIT
	start
	cat >task.sh <<'END'
#!/bin/bash
./sgtrace extract -o traces-ds --shard $SLURM_ARRAY_TASK_ID/$RANKS traces-in 2>/dev/null &
pid=$!
if [ "$KILL" = yes ] && [ $((RANDOM % 3)) = 0 ]; then
	sleep 0.0$((RANDOM % 10))
	kill -9 $pid && echo killed
fi
wait $pid
END
	array=0-$((ranks - 1))
	first=$(sbatch --parsable --array=$array --export=ALL,KILL=yes --output=first.%a task.sh)
	again=$(sbatch --parsable --array=$array --export=ALL,KILL=no --dependency=afterany:"$first" --output=again.%a task.sh)
	sbatch --wait --dependency=afterok:"$again" --kill-on-invalid-dep=yes --output=printed --error=/dev/null \
		--wrap './sgtrace report traces-ds' >/dev/null
	say "Slurm: $ranks tasks, $(cat first.* | grep -c killed) of them killed, all run again, and the report, in $SECONDS s"
	./sgtrace report --quiet traces-in >want
	sed s/traces-ds/traces-in/g printed | diff want - || fail "the job printed another report"
}

go build -o "$dir/sgtrace" ./cmd/sgtrace
# Folders that are compared have names of one length, so that tables are as wide.
go run ./scripts simulate ranks -ranks "$ranks" "$dir/traces-in"
cd "$dir"
say "$ranks ranks"

for shard in 64/64 -1/64 0/0 3 1/x; do
	status=0
	./sgtrace extract -o refused --shard=$shard . 2>/dev/null || status=$?
	[ $status = 2 ] || fail "--shard $shard: status $status, want 2"
done
say "shard numbers out of range are refused"

# As the recipe in docs/SCALE.md does.
seq 0 $((ranks - 1)) | xargs -P "$(nproc)" -I{} ./sgtrace extract --quiet -o traces-xa --shard {}/"$ranks" traces-in
say "xargs: $ranks shards on $(nproc) cores"

SECONDS=0
set +e
(set -e && under_slurm)
status=$?
set -e
case $status in
0)
	# Killed tasks have left what they had begun.
	diff -r -x '.unfinished-*' traces-xa traces-ds || fail "the datasets of xargs and of Slurm differ"
	say "datasets of xargs and Slurm are byte-identical"
	;;
3) mv traces-xa traces-ds ;;
*) exit $status ;;
esac

for words in report "report --by-rank" "report --format json" "requests --format json"; do
	./sgtrace $words --quiet traces-in >want
	./sgtrace $words --quiet traces-ds | sed s/traces-ds/traces-in/g | cmp want - || fail "sgtrace $words differs on the dataset"
done
say "reports on the dataset and on the files are byte-identical"

cd "$repository"
SGTRACE_SCALE=$cache SGTRACE_SCALE_RUN=$dir go test -count=1 -v -run TestViewsAreReports ./cmd/sgtrace
