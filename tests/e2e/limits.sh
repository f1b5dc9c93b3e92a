#!/bin/bash
# A memory hog and a fork bomb end inside; the host does not notice.
. "$(dirname "$0")/lib.sh"
command -v python3 >/dev/null || skip_all "no python3"

own_binary
out=$(timeout 60 "$own" run --memory 100M -- python3 -c '
b = []
while True: b.append(bytearray(b"x" * 4000000))' 2>&1)
is "memory hog ends with 137" $? 137
has "one line says why" "$out" '[Mm]emory'
is "below the limit nothing happens" "$(pf --memory 300M -- python3 -c 'b = bytearray(b"x" * 50000000); print(len(b))')" 50000000
gone "nothing is left"
hog='
import mmap, os, sys, time
fd = -1
if sys.argv[1] == "memfd":
    fd = os.memfd_create("x"); os.ftruncate(fd, 400 << 20)
m = mmap.mmap(fd, 400 << 20)
for i in range(0, 400 << 20, 4096): m[i] = 1
m.close()
time.sleep(5)'
status "shared memory counts" 137 "$own" run --memory 100M -- python3 -c "$hog" anonymous
status "an unmapped memory file counts" 137 "$own" run --memory 100M -- python3 -c "$hog" memfd
has "a full tmpfs is no reason to end" "$(pf --memory 100M -- sh -c 'head -c 400000000 /dev/zero >/tmp/x; sleep 0.5; echo alive' 2>&1)" alive
gone "nothing is left of them"

# The bomb: children that fork for ever; inside fork gives EAGAIN, outside we can go on.
cat >bomb.sh <<'BOMB'
f() { f | f & }
f 2>/dev/null
sleep 2
BOMB
timeout 60 "$own" run --pids 64 --timeout 20s -- bash bomb.sh >/dev/null 2>&1
rc=$?
case $rc in 0 | 124 | 143 | 254) pass "fork bomb ends" ;; *) flunk "fork bomb ends" "status $rc" ;; esac
gone "nothing is left of the bomb"
is "EAGAIN at the limit" "$(pf --pids 20 -- python3 -c '
import os, errno
n = 0
try:
    while True:
        if os.fork() == 0:
            import time; time.sleep(100)
        n += 1
except OSError as e:
    print(errno.errorcode[e.errno], n < 20)')" "EAGAIN True"
is "threads count too" "$(pf --pids 20 -- python3 -c '
import threading, time
n = 0
try:
    for i in range(100):
        t = threading.Thread(target=time.sleep, args=(1,), daemon=True); t.start(); n += 1
except RuntimeError:
    print("limit", n < 20)')" "limit True"
finish
