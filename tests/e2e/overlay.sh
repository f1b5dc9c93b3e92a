#!/bin/bash
# Writes go to an overlay that ends with the sandbox; --rw lets them through, --ro refuses them.
. "$(dirname "$0")/lib.sh"

mkdir -p tree/sub rw
echo old >tree/file
echo keep >tree/sub/keep
before=$(find tree -printf '%p %m %s %T@\n' | sort; cat tree/file)

is "write is seen inside" "$(pf -- sh -c 'echo new >tree/file; echo more >>tree/file; cat tree/file')" "new
more"
is "create and list" "$(pf -- sh -c 'echo x >tree/fresh; mkdir tree/d; ls tree')" "d
file
fresh
sub"
is "remove" "$(pf -- sh -c 'rm tree/file; rm -r tree/sub; ls -A tree; [ -e tree/file ] || echo gone')" gone
is "rename" "$(pf -- sh -c 'mv tree/file tree/other; mv tree/sub tree/sub2; cat tree/other tree/sub2/keep; ls tree')" "old
keep
other
sub2"
is "recreate what was removed" "$(pf -- sh -c 'rm -r tree/sub; mkdir tree/sub; ls -A tree/sub; echo z >tree/sub/z; ls tree/sub')" z
is "chmod, touch, truncate, link" "$(pf -- sh -c 'chmod 600 tree/file; touch -d @1 tree/file; ln tree/file tree/hard; ln -s file tree/soft; truncate -s 2 tree/file; stat -c "%a %h %s" tree/file; cat tree/soft; stat -c %Y tree/sub/keep >/dev/null')" "600 2 2
ol"
is "append to a big file" "$(head -c 300000 /dev/urandom >tree/sub/big; before_big=$(md5sum <tree/sub/big); pf -- sh -c 'echo tail >>tree/sub/big; head -c 300000 tree/sub/big | md5sum; tail -c 5 tree/sub/big' | tr '\n' ' '; [ "$before_big" = "$(md5sum <tree/sub/big)" ] || echo changed)" "$(md5sum <tree/sub/big) tail "
rm -f tree/sub/big
touch -d "$(stat -c @%Y tree/sub/keep)" tree/sub
after=$(find tree -printf '%p %m %s %T@\n' | sort; cat tree/file)
is "nothing reached the host" "$(grep -v 'tree/sub ' <<<"$after")" "$(grep -v 'tree/sub ' <<<"$before")"
is "gone with the sandbox" "$(pf -- cat tree/file)" old

pf --rw rw -- sh -c 'echo through >rw/a; mkdir rw/d; echo b >rw/d/b; ln -s a rw/l; echo lost >tree/lost; mv rw/d/b rw/c; rmdir rw/d; chmod 640 rw/c'
is "--rw writes through" "$(cat rw/a rw/l rw/c; ls rw; stat -c %a rw/c)" "through
through
b
a
c
l
640"
is "--rw only there" "$(ls tree)" "file
sub"
has "--ro refuses" "$(pf --ro tree -- sh -c 'echo x >tree/file; rm tree/file; mkdir tree/n' 2>&1)" 'Read-only file system'
is "--ro shows" "$(pf --ro tree -- cat tree/file)" old
is "-v under another name" "$(pf -v "$PWD/tree:/mnt/t:ro" -- sh -c 'cat /mnt/t/file; echo x 2>/dev/null >/mnt/t/n || echo ro')" "old
ro"
is "-v writes through" "$(pf -v "$PWD/rw:/mnt/w" -- sh -c 'echo v >/mnt/w/v'; cat rw/v)" v
is "a single file" "$(echo one >one; pf --rw one -- sh -c 'echo two >one; echo x >other'; cat one; [ -e other ] || echo no)" "two
no"
is "--rootfs" "$(pf --rootfs tree -- /no 2>/dev/null; echo $?)" 127
is "-w" "$(pf -w /usr -- pwd)" /usr
is "cwd kept" "$(pf -- pwd)" "$PWD"
# A symlink, .. or /proc leads no further out of a tree than its name says.
is "link out of --rw goes to the overlay" "$(ln -s ../tree rw/out; pf --rw rw -- sh -c 'echo evil >rw/out/file; cat rw/out/file'; cat tree/file)" "evil
old"
finish
