#!/bin/bash
# Real programs of this machine give the same output inside as outside.
. "$(dirname "$0")/lib.sh"

same "uname" uname -sm
same "ls" ls -l /usr/bin/env /etc/passwd
same "pipeline" bash -c 'seq 1 2000 | grep 7 | sort -r | head -n 5 | tr 7 x'
same "here-document and subshell" bash -c 'cat <<X; (cd /; pwd); echo $((6 * 7)) `echo back`
text
X'
same "process substitution" bash -c 'diff <(echo a) <(echo b); echo $?'
same "arrays and traps" bash -c 'a=(1 2 3); trap "echo bye" EXIT; for i in ${a[@]}; do echo $i; done'
same "background and wait" bash -c 'sleep 0.1 & p=$!; wait $p; echo $?; (exit 3) & wait $!; echo $?'
same "find" find /usr/share/doc/bash /etc/default -type f
same "sort" bash -c 'seq 1 50000 | sort | md5sum'
same "tar and gzip" bash -c 'd=$(mktemp -d); cp -r /etc/default $d/; tar czf $d/a.tgz -C $d default && mkdir $d/o && tar xzf $d/a.tgz -C $d/o && diff -r $d/default $d/o/default && echo same; rm -rf $d'
same "xargs" bash -c 'seq 1 200 | xargs -n 10 -P 4 sh -c "echo \$#" | sort | uniq -c'
same "awk and sed" bash -c 'seq 1 100 | awk "{ s += \$1 } END { print s }" | sed "s/5/five/g"'
same "dd" bash -c 'dd if=/dev/zero bs=4096 count=100 2>/dev/null | md5sum'
same "links and times" bash -c 'd=$(mktemp -d); cd $d; echo a >a; ln a b; ln -s a c; touch -d @1000000000 a; stat -c "%h %s %Y" a b; readlink c; cd /; rm -rf $d'
want() { if command -v "$1" >/dev/null; then return 0; fi; skip "$2" "no $1"; return 1; }
want perl perl && same "perl" perl -e 'my %h; $h{$_ % 7}++ for 1..1000; print join(",", map { "$_=$h{$_}" } sort keys %h), "\n"; system("echo sub"); print `echo back`;'
want python3 python3 && same "python3" python3 -c 'import sys, os, json, subprocess; print(json.dumps({"a": [1, 2]}), subprocess.check_output(["echo", "x"]))'
want python3 "threads" && same "python3 threads" python3 -c '
import threading, queue
q = queue.Queue(); r = []
def w():
    while (i := q.get()) is not None: r.append(i * i)
t = [threading.Thread(target=w) for _ in range(8)]
[x.start() for x in t]; [q.put(i) for i in range(500)]; [q.put(None) for _ in t]; [x.join() for x in t]
print(sum(r))'
want python3 "multiprocessing" && same "python3 multiprocessing" python3 -c '
import multiprocessing as m
def f(x): return x * x
if __name__ == "__main__":
    with m.Pool(4) as p: print(sum(p.map(f, range(200))))'
want python3 "asyncio" && same "python3 asyncio" python3 -c '
import asyncio
async def f(i): await asyncio.sleep(0.01); return i
async def main():
    p = await asyncio.create_subprocess_exec("echo", "hi", stdout=asyncio.subprocess.PIPE)
    print((await p.communicate())[0], sum(await asyncio.gather(*[f(i) for i in range(100)])))
asyncio.run(main())'
want python3 "sqlite3" && same "python3 sqlite3" python3 -c '
import sqlite3, tempfile, os
d = tempfile.mkdtemp(); c = sqlite3.connect(d + "/x.db"); c.execute("pragma journal_mode=wal"); c.execute("create table t(a)")
with c: c.executemany("insert into t values(?)", [(i,) for i in range(1000)])
print(c.execute("select sum(a), count(*) from t").fetchone())'
want git git && same "git" bash -c 'd=$(mktemp -d); cd $d; git init -q . 2>/dev/null; git config user.email a@b; git config user.name n; echo 1 >f; git add f; git commit -qm one; echo 2 >>f; git commit -qam two; git log --format=%s; git gc -q; git fsck 2>&1 | wc -l; git status --short; cd /; rm -rf $d'
want gcc gcc && same "gcc" bash -c 'd=$(mktemp -d); cd $d; printf "#include <stdio.h>\nint main(void) { puts(\"compiled\"); return 4; }\n" >a.c; gcc -O1 -o a a.c && ./a; echo $?; cd /; rm -rf $d'
want make make && same "make" bash -c 'd=$(mktemp -d); cd $d; printf "all: a b c\n\t@cat a b c\n%%:\n\t@sleep 0.05; echo \$@ >\$@\n" >Makefile; make -s -j2; cd /; rm -rf $d'
want node node && same "node" node -e 'const {Worker, isMainThread} = require("worker_threads"); require("child_process").exec("echo child", (e, o) => console.log(o.trim())); setTimeout(() => console.log("t"), 50)'
want java java && LIMIT=120 same "java" java --version
want go go && same "go version" go version
finish
