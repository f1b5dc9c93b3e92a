#!/bin/bash
# --trace prints calls with names, arguments and results, from the table.
. "$(dirname "$0")/lib.sh"

echo content >file
out=$(pf --trace -- cat file 2>&1 >/dev/null)
has "execve or the first call" "$out" '^.*(execve|brk)\('
has "openat with its path" "$out" 'openat\(.*"file".*\) *= *[0-9]+'
has "read with its data" "$out" 'read\([0-9]+, "content\\n", [0-9]+\) *= *8'
has "write" "$out" 'write\(1, "content\\n", 8\) *= *8'
has "an error has its name" "$(pf --trace -- cat missing 2>&1)" 'openat\(.*"missing".*\) *= *-1 ENOENT'
pf --trace=trace.txt -- cat file >/dev/null 2>err
is "nothing on stderr with a file" "$(cat err)" ""
has "the file has it" "$(cat trace.txt)" 'openat'
has "exit_group" "$(cat trace.txt)" 'exit_group\(0\)'
finish
