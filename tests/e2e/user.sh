#!/bin/bash
# pinfold works for an ordinary user as it does for root.
. "$(dirname "$0")/lib.sh"
[ "$(id -u)" = 0 ] || skip_all "already an ordinary user: the other tests show it"
command -v setpriv >/dev/null || skip_all "no setpriv"

chmod 755 . "$(dirname "$PWD")" 2>/dev/null
mkdir home && chown 65534:65534 home && cp "$PINFOLD" home/pinfold
as() { (cd home && HOME=$PWD/home LIMIT=60 setpriv --reuid=65534 --regid=65534 --clear-groups --no-new-privs "$@"); }
as test -r . || skip_all "the scratch directory cannot be read by others"
run() { as timeout 60 ./pinfold run "$@"; }

is "runs" "$(run -- echo hello 2>&1)" hello
is "ids" "$(run -- id -u)" 65534
is "host view" "$(run -- sh -c 'ls / | head -n 1')" "$(ls / | head -n 1)"
has "what the user cannot read stays closed" "$(echo secret >root-only; chmod 600 root-only; run -- cat ../root-only 2>&1)" 'Permission denied'
is "overlay" "$(run -- sh -c 'echo x >f; cat f'; ls home/f 2>&1 | grep -c 'No such')" "x
1"
is "--rw" "$(run --rw . -- sh -c 'echo y >g'; stat -c %u home/g)" 65534
is "fork and pipes" "$(run -- sh -c 'seq 1 1000 | sort -n | tail -n 1')" 1000
has "not root inside" "$(run -- sh -c 'cat /etc/shadow; mkdir /newdir' 2>&1)" '(Permission denied|No such file)'
is "ptrace platform" "$(run --platform=ptrace -- echo hello 2>&1)" hello
has "doctor" "$(as ./pinfold doctor)" 'yes +platform'
finish
