#!/bin/bash
# Attacks whose outcome is to be seen on the host: what the tree, the descriptors and the processes
# look like while and after a hostile guest runs.
. "$(dirname "$0")/lib.sh"

own_binary
own() { timeout -k 5 60 "$own" run "$@"; }
tree_state() { (cd "$1" && find . -printf '%p %y %m %U %l %s %T@\n' -type f -exec cksum {} + | sort); }

# --- the tree ----------------------------------------------------------------------------------------
mkdir -p tree/sub home/.ssh out
echo data >tree/file
echo more >tree/sub/file
ln -s ../out tree/link
echo outside >out/file
echo KEY >home/.ssh/id
echo KEY >home/.netrc
before=$(tree_state .)
own -- sh -c 'cd "$1" && rm -rf tree out; mkdir tree; echo x >tree/file; ln -s / tree/all; chmod -R 777 . ; mv home h2; touch new' sh "$PWD" >/dev/null 2>&1
is "a read-only tree is as before" "$(tree_state . | grep -v pf-own)" "$(grep -v pf-own <<<"$before")"

cat >escape.sh <<'S'
cd "$1/tree" || exit
echo evil >link/file
echo evil >../out/file
echo evil >../out/new
mv sub ../out/sub
ln ../out/file hard
ln -s "$1/out" again; echo evil >again/file
ln -s /proc/self/root"$1"/out third; echo evil >third/file
mount --bind "$1/out" sub; echo evil >sub/evil
mkdir a; (cd a; mv ../a ../../out/a; cd ..; echo evil >../out/file)
for i in 1 2 3 4 5 6 7 8; do up=$up../; echo evil >"${up}out/file"; done
exec 9<.; (cd /proc/self/fd/9/..; echo evil >out/file)
S
own --rw "$PWD/tree" -- sh escape.sh "$PWD" >/dev/null 2>&1
is "nothing beside a --rw tree changed" "$(cat out/file; ls out)" "outside
file"
# Each name in the tree is one of the guest's, none a second name of what lies outside.
is "no hard link to the outside" "$(stat -c %h out/file)" 1

# --- files that would be dangerous on the host --------------------------------------------------------
mkdir rw
cp /bin/true rw/prog
own --rw "$PWD/rw" -- sh -c 'cd "$1"; chmod 6755 prog; cp prog new; chmod u+s,g+s new; install -m 4755 prog third
	mknod disk b 8 0; mknod mem c 1 1; mknod null c 1 3; mkfifo fifo; setcap cap_sys_admin+ep prog' sh "$PWD/rw" >/dev/null 2>&1
is "no set-user-ID file is left on the host" "$(find rw -type f -perm /6000)" ""
is "no device is left on the host" "$(find rw -type b -o -type c)" ""
is "no capability is left on the host" "$(getfattr -d -m security rw/prog 2>/dev/null)" ""
has "a fifo may be made" "$(ls -l rw)" '^p.*fifo'
own --rw "$PWD/rw" -- sh -c 'cd "$1"; ln -s /etc/passwd pw; ln -s ../home/.netrc n; chmod 666 pw; echo x >>pw' sh "$PWD/rw" >/dev/null 2>&1
is "a link's target is not changed" "$(stat -c %a /etc/passwd)" 644

# --- secrets ---------------------------------------------------------------------------------------------
export HOME=$PWD/home
mkdir home/shown
ln home/.netrc home/shown/second
out=$(own --rw "$HOME" -- sh -c 'cat "$HOME/shown/second"; ls -i "$HOME/shown"; ln "$HOME/.netrc" "$HOME/x"; ln "$HOME/shown/second" "$HOME/y"; cat "$HOME/x" "$HOME/y"' 2>&1)
hasnt "a second name of a secret tells nothing" "$out" KEY
out=$(own --rw "$HOME" -- sh -c 'cd "$HOME"; mv .ssh a; mv .netrc b; cp -r .ssh c; mkdir d; mv --exchange d .ssh; mv -T d .ssh; cat a/* b c/* d/* .ssh/*; tar c . | strings' 2>&1)
hasnt "moving and copying tell nothing" "$out" KEY
is "the secret is where it was" "$(cat home/.ssh/id home/.netrc)" "KEY
KEY"
# Another program of the host writes the secret anew: another file under the name.
out=$(own --rw "$HOME" -- sh -c 'cd "$HOME"; echo go >go; for i in $(seq 50); do [ -e made ] && break; sleep 0.1; done; cat .netrc; for i in 1 2 3; do ls -a; done; mv .netrc z; cat z; ln .netrc zz; cat zz' 2>&1 &
	for i in $(seq 100); do [ -e home/go ] && break; sleep 0.1; done
	echo NEWKEY >home/.netrc.tmp; mv home/.netrc.tmp home/.netrc; touch home/made
	wait)
hasnt "a secret that was replaced tells nothing" "$out" 'KEY|\.netrc$'

# --- descriptors -------------------------------------------------------------------------------------------
echo mine >held-by-caller
exec 7<held-by-caller 8<>"out/file"
own -- sh -c 'sleep 3 & sleep 3; :' &
main=$!
for i in $(seq 40); do [ "$(own_processes | wc -l)" -ge 5 ] && break; sleep 0.1; done
held=$(for p in $(own_processes); do readlink /proc/"$p"/fd/* 2>/dev/null; done)
hasnt "the caller's other descriptors are held by nobody" "$held" 'held-by-caller|out/file'
stubs=0 leaks= weak=
for p in $(own_processes); do
	# An exec inside may just have ended the stub of the old program: what has no status any more is nothing to judge.
	status=$(cat "/proc/$p/status" 2>/dev/null) || continue
	grep -q '^Seccomp:.2' <<<"$status" && grep -q '^NoNewPrivs:.1' <<<"$status" || weak="$weak $p"
	grep -q '^Name:.pinfold-stub$' <<<"$status" || continue
	stubs=$((stubs + 1))
	leaks=$leaks$(ls "/proc/$p/fd" 2>/dev/null)
	grep -qE '^CapEff:.0+$' <<<"$status" || weak="$weak $p"
done
if [ "$stubs" -ge 3 ]; then pass "stubs run"; else flunk "stubs run" "$stubs"; fi
is "stubs hold no descriptor" "$leaks" ""
is "every process is confined" "$weak" ""
wait $main
exec 7<&- 8>&-

# --- processes ------------------------------------------------------------------------------------------------
sleep 60 &
bystander=$!
own -- sh -c 'for i in $(seq 1 200); do kill -9 $((i * 37)) 2>/dev/null; done; kill -9 '$bystander' $PPID; kill -9 -1' >/dev/null 2>&1
if kill -0 $bystander 2>/dev/null; then pass "processes of the host live on"; else flunk "processes of the host live on"; fi
kill $bystander
own -- sh -c 'for i in 1 2 3 4 5; do (setsid sleep 100 &) ; done; trap "" HUP TERM INT; exit 3'
is "its status comes" $? 3
gone "nobody is left"
finish
