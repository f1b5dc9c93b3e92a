#!/bin/bash
# The exit status is the command's own, 128+N, 124, 125, 126 or 127.
. "$(dirname "$0")/lib.sh"

status "true" 0 pf -- true
status "false" 1 pf -- false
status "own status" 42 pf -- sh -c 'exit 42'
status "255" 255 pf -- sh -c 'exit 255'
status "death by SIGTERM" 143 pf -- sh -c 'kill -TERM $$'
status "death by SIGKILL" 137 pf -- sh -c 'kill -KILL $$'
status "death by SIGSEGV" 139 pf -- sh -c 'kill -SEGV $$'
status "time-out" 124 pf --timeout 300ms -- sleep 30
status "time-out of a program that ignores signals" 124 pf --timeout 300ms -- sh -c 'trap "" TERM INT; while :; do sleep 1; done'
status "no time-out" 0 pf --timeout 20s -- true
status "unknown command" 127 pf -- no-such-command-here
status "unknown path" 127 pf -- /no/such/file
echo 'not a program' >plain && chmod 644 plain
status "not executable" 126 pf -- ./plain
status "a directory" 126 pf -- /usr
chmod 755 plain
status "unknown option" 125 pf --no-such-option -- true
status "no command" 125 pf
status "first process ends, others are killed" 3 pf -- sh -c 'sleep 100 & exit 3'
is "shell shim" "$("$PINFOLD" -c 'echo $0 $1; exit 0' a b 2>&1)" "a b"
"$PINFOLD" -c 'exit 9'
is "shell shim, status" $? 9
finish
