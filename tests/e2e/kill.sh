#!/bin/bash
# However pinfold ends, no process stays; signals reach the command.
. "$(dirname "$0")/lib.sh"

own_binary
# A background process of a script ignores SIGINT; undo that.
start() { # COMMAND STRING; sets pid; waits for "ready"
	rm -f out && mkfifo out
	env --default-signal "$own" run -- sh -c "$1" >out 2>err &
	pid=$!
	read -r -t 20 line <out || line="nothing: $(cat err)"
	[ "$line" = ready ] || flunk "start of: $1" "got $line"
}
family='sleep 1000 & (sleep 1000; :) & echo ready; exec sleep 1000'

for sig in KILL TERM INT HUP QUIT SEGV; do
	start "$family"
	n=$(own_processes | wc -l)
	kill -$sig $pid
	wait $pid 2>/dev/null
	rc=$?
	is "status after SIG$sig" $rc $((128 + $(kill -l $sig)))
	gone "SIG$sig leaves no process (there were $n)"
done

start 'trap "exit 7" TERM; echo ready; while :; do sleep 0.1; done'
kill -TERM $pid
wait $pid
is "the command's handler runs" $? 7
start 'trap "exit 8" USR1; echo ready; while :; do sleep 0.1; done'
kill -USR1 $pid
wait $pid
is "SIGUSR1 too" $? 8
start 'trap "" TERM; echo ready; while :; do sleep 0.1; done'
kill -TERM $pid
sleep 0.5
if kill -0 $pid 2>/dev/null; then pass "an ignored SIGTERM is ignored"; else flunk "an ignored SIGTERM is ignored"; fi
kill -KILL $pid
wait $pid 2>/dev/null
gone "after that"

# At odd moments: while the sandbox is being built, at work, at its end.
for i in $(seq 0 24); do
	env --default-signal "$own" run -- sh -c 'for i in 1 2 3 4 5 6 7 8; do /bin/true; done' >/dev/null 2>&1 &
	pid=$!
	sleep "$(printf '0.%03d' $((i * 7)))"
	kill -KILL $pid 2>/dev/null
	wait $pid 2>/dev/null
done
gone "25 kills at odd moments leave no process"

# Each of its processes killed in turn: the sandbox ends as a whole.
start "$family"
sleep 0.5 # until the last exec is through
for v in $(own_processes | grep -vx "$pid"); do kill -KILL "$v" 2>/dev/null; done
state() { cut -d' ' -f3 "/proc/$pid/stat" 2>/dev/null || echo gone; }
for i in $(seq 50); do
	[[ $(state) = [Zg]* ]] && break
	sleep 0.1
done
has "ends when all its helpers are killed" "$(state)" '^(Z|gone)'
kill -KILL $pid 2>/dev/null
wait $pid 2>/dev/null
gone "and leaves nothing"

# Stop and continue from outside.
start 'echo ready; i=0; while [ $i -lt 10 ]; do sleep 0.1; i=$((i+1)); done; exit 5'
kill -STOP $pid; sleep 0.3; kill -CONT $pid
wait $pid
is "SIGSTOP and SIGCONT from outside" $? 5
# The host's processes are not to be seen.
is "host pids are invisible" "$(pf -- sh -c 'set -- /proc/[0-9]*; echo $#; kill -0 '$$' 2>/dev/null && echo reached')" 1
finish
