#!/bin/bash
# Random file calls give the same results as on the host: in memory, over a host tree, on a host tree.
. "$(dirname "$0")/lib.sh"

SEEDS=${SEEDS:-12} COUNT=${COUNT:-400}
gcc -std=gnu11 -D_GNU_SOURCE -O1 -static -o file_ops "$e2e_dir/file_ops.c" 2>gcc.log ||
	skip_all "no static programs can be built"
cat >all.sh <<'END'
# all.sh PROGRAM DIRECTORY SEEDS COUNT KEEP
for seed in $(seq "$3"); do
	dir=$2/$seed
	# What ran before may have closed the directories to an ordinary user: in both places alike.
	mkdir -p "$dir/1/2/3/4/5/6" 2>/dev/null && cd "$dir/1/2/3/4/5/6" 2>/dev/null || continue
	echo "seed $seed"
	"$1" names $((seed + ${5:-0})) "$4"
	"$1" locks "$seed" "$4"
done
END
here=$PWD
chmod 755 . # the program may run as another user inside
mkdir native rw lower native-lower

compare() { # NAME
	if cmp -s want got; then
		pass "$1"
	else
		flunk "$1" "$(diff -a want got | head -n 12)" "$(head -n 3 err)"
	fi
}

bash all.sh "$here/file_ops" "$here/native" "$SEEDS" "$COUNT" >want
pf -- bash "$here/all.sh" "$here/file_ops" /dev/shm "$SEEDS" "$COUNT" >got 2>err
compare "in a tmpfs"
pf -- bash "$here/all.sh" "$here/file_ops" "$here/rw" "$SEEDS" "$COUNT" >got 2>err
compare "in an overlay"
is "the overlay left nothing behind" "$(ls rw)" ""
pf --rw "$here/rw" -- bash "$here/all.sh" "$here/file_ops" "$here/rw" "$SEEDS" "$COUNT" >got 2>err
compare "on a writable host tree"

# The same trees below the overlay and natively, then other calls on top. What a directory below hides from
# its owner cannot be shown after a chmod above it: only root sees no difference.
if [ "$(id -u)" != 0 ]; then
	skip "over a host tree" "needs root"
	finish
fi
bash all.sh "$here/file_ops" "$here/lower" "$SEEDS" "$COUNT" >/dev/null
bash all.sh "$here/file_ops" "$here/native-lower" "$SEEDS" "$COUNT" >/dev/null
bash all.sh "$here/file_ops" "$here/native-lower" "$SEEDS" "$COUNT" 1000 >want
pf -- bash "$here/all.sh" "$here/file_ops" "$here/lower" "$SEEDS" "$COUNT" 1000 >got 2>err
compare "over a host tree"
finish
