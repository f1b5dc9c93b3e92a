#!/bin/bash
# Standard streams pass through as they are.
. "$(dirname "$0")/lib.sh"

seq 1 1000 >numbers
is "stdin at the caller's offset" "$( (read -r a; read -r b; pf -- head -n 1) <numbers)" "$( (read -r a; read -r b; head -n 1) <numbers)"
is "the offset is shared afterwards" "$( (pf -- sh -c 'read a; read b'; head -c 4) <numbers)" "$( (sh -c 'read a; read b'; head -c 4) <numbers)"
is "stdout appends at its offset" "$( (echo one; pf -- echo two; echo three) >file; cat file)" "one
two
three"
is "append mode" "$(echo 1 >app; (pf -- echo 2; echo 3) >>app; cat app)" "1
2
3"
is "stderr is another" "$(pf -- sh -c 'echo out; echo err >&2' 2>/dev/null)" out
is "stderr passes" "$(pf -- sh -c 'echo out; echo err >&2' 2>&1 >/dev/null)" err
is "pipe in, pipe out" "$(seq 1 100000 | pf -- cat | md5sum)" "$(seq 1 100000 | md5sum)"
is "binary data" "$(head -c 3000000 /dev/urandom >rnd; pf -- cat <rnd | cmp - rnd && echo same)" same
is "end of file on a pipe" "$(printf abc | pf -- sh -c 'cat; echo .')" "abc."
is "closed stdin" "$(pf -- sh -c 'cat 2>/dev/null || echo failed; echo on' <&-)" "$(sh -c 'cat 2>/dev/null || echo failed; echo on' <&-)"
is "closed stdout" "$(pf -- sh -c 'echo x 2>/dev/null; echo $? >&2' 2>&1 >&-)" "$(sh -c 'echo x 2>/dev/null; echo $? >&2' 2>&1 >&-)"
is "all closed" "$(pf -- sh -c 'exit 6' <&- >&- 2>&-; echo $?)" 6
is "/dev/null" "$(pf -- sh -c 'cat; echo x' </dev/null)" x
is "a reader that leaves" "$(pf -- yes 2>/dev/null | head -n 2)" "y
y"
( pf -- yes 2>/dev/null; echo $? >rc ) | head -n 1 >/dev/null
is "SIGPIPE's status" "$(cat rc)" 141
is "a directory as stdin" "$(pf -- cat < / 2>&1)" "$(cat < / 2>&1)"
is "other descriptors stay outside" "$(exec 7<numbers; pf -- sh -c 'ls /proc/self/fd | tr "\n" " "; cat <&7' 2>/dev/null)" "$(pf -- sh -c 'ls /proc/self/fd | tr "\n" " "')"
is "nobody reads ahead" "$( (pf -- true; cat) <<<"still here")" "still here"
is "slow pipe" "$( (echo a; sleep 0.3; echo b) | pf -- cat)" "a
b"
finish
