#!/bin/bash
# Whatever is wrong gets one line that names it, and status 125.
. "$(dirname "$0")/lib.sh"

bad() { # NAME PATTERN ARGS...
	local name=$1 pattern=$2 out rc
	shift 2
	out=$("$PINFOLD" "$@" 2>&1 >/dev/null </dev/null)
	rc=$?
	if [ $rc = 125 ] && [ "$(wc -l <<<"$out")" = 1 ] && grep -qE -- "$pattern" <<<"$out"; then
		pass "$name"
	else
		flunk "$name" "status $rc" "$out"
	fi
}
bad "nothing at all" "help"
bad "unknown command" "did you mean run" runn
bad "a program instead of a command" "pinfold run -- ls" ls
bad "unknown option" "did you mean --memory" run --memmory 1G -- true
bad "missing value" "needs a value" run --rw
bad "missing directory" "/no/such" run --rw /no/such -- true
bad "bad volume" "HOST:GUEST" run -v x -- true
bad "bad size" "not a size" run -m much -- true
bad "bad time" "not a duration" run -t never -- true
bad "bad platform" "no such platform" run --platform qemu -- true
bad "rootfs is a file" "not a directory" run --rootfs /etc/passwd -- true
bad "trace cannot be written" "cannot write" run --trace=/no/such/x -- true
bad "start directory is missing" "/no/such/dir" run -w /no/such/dir -- true
bad "rootfs without a hidden tree" "--show" run --ro /etc/shadow -- true
bad "doctor takes nothing" "unknown argument" doctor x
bad "syscalls format" "table, md or json" syscalls --format=xml
out=$("$PINFOLD" run -- no-such-command 2>&1)
has "command not found says which" "$out" 'no-such-command'
is "in one line" "$(wc -l <<<"$out")" 1
has "help" "$("$PINFOLD" help)" 'pinfold run'
has "help of run" "$("$PINFOLD" run --help)" '--memory'
has "version" "$("$PINFOLD" version)" '^pinfold [0-9]'
out=$("$PINFOLD" doctor)
has "doctor finds the kernel" "$out" 'kernel 5.15'
has "doctor lists platforms" "$out" 'platform ptrace'
is "coverage as JSON" "$("$PINFOLD" syscalls --format=json | python3 -c 'import json, sys; d = json.load(sys.stdin); print("ok")' 2>&1)" ok
has "coverage as a table" "$("$PINFOLD" syscalls)" 'read'
finish
