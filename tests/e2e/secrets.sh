#!/bin/bash
# Secrets do not exist inside: no name, no error that betrays them, no way round.
. "$(dirname "$0")/lib.sh"

export HOME=$PWD/home
mkdir -p "$HOME/.ssh" "$HOME/.aws" "$HOME/.config/gh" "$HOME/.docker" "$HOME/visible"
echo KEY >"$HOME/.ssh/id_rsa"
echo KEY >"$HOME/.aws/credentials"
echo KEY >"$HOME/.config/gh/hosts.yml"
echo KEY >"$HOME/.docker/config.json"
echo KEY >"$HOME/.netrc"
echo KEY >"$HOME/.bash_history"
echo fine >"$HOME/visible/file"
ln -s "$HOME/.ssh" "$HOME/visible/link"
ln -s .ssh/id_rsa "$HOME/link2"

for f in .ssh .ssh/id_rsa .aws .config/gh/hosts.yml .docker/config.json .netrc .bash_history visible/link/id_rsa link2; do
	out=$(pf -- cat "$HOME/$f" 2>&1)
	has "$f: no such file" "$out" 'No such file or directory'
done
is "neighbours are there" "$(pf -- cat "$HOME/visible/file")" fine
out=$(pf -- ls -la "$HOME" 2>&1)
hasnt "not listed" "$out" '\.ssh$|\.aws|\.netrc|\.bash_history'
out=$(pf -- find "$HOME" 2>/dev/null)
hasnt "not found" "$out" 'id_rsa|credentials|hosts.yml|config.json'
has "found what is allowed" "$out" 'visible/file'
out=$(pf -- grep -rs KEY "$HOME" 2>&1)
is "no content by recursion" "$out" ""
out=$(pf -- sh -c 'cd "$HOME/.ssh" 2>&1; ls "$HOME/visible/../.ssh" 2>&1; ls /proc/self/root"$HOME"/.ssh 2>&1; ls "$HOME/./.ssh/" 2>&1')
is "no way round by names" "$(grep -ciE 'no such file|can.t cd' <<<"$out")" 4
hasnt "no key by names" "$out" 'id_rsa'
# A hidden name may be used inside, and does not touch the host's.
is "own file of that name" "$(pf -- sh -c 'mkdir "$HOME/.ssh" && echo mine >"$HOME/.ssh/config" && cat "$HOME/.ssh/config" && ls "$HOME/.ssh"' 2>&1)" "mine
config"
is "host's is untouched" "$(ls "$HOME/.ssh")" id_rsa
is "--show lifts one" "$(pf --show "$HOME/.ssh" -- cat "$HOME/.ssh/id_rsa" 2>&1)" KEY
has "--show lifts only one" "$(pf --show "$HOME/.ssh" -- cat "$HOME/.aws/credentials" 2>&1)" 'No such file'
has "hidden below --rw" "$(pf --rw "$HOME" -- cat "$HOME/.ssh/id_rsa" 2>&1)" 'No such file'
has "rename cannot uncover" "$(pf --rw "$HOME" -- sh -c 'mv "$HOME/.ssh" "$HOME/x"; cat "$HOME/x/id_rsa"' 2>&1)" 'No such file'
is "the host's key is still there" "$(cat "$HOME/.ssh/id_rsa")" KEY
# Evaluated live: a secret that appears later is hidden too.
rm -rf "$HOME/.aws"
out=$(pf --rw "$PWD" -- sh -c 'echo go >go; for i in 1 2 3 4 5 6 7 8 9 10; do [ -e made ] && break; sleep 0.2; done; cat "$HOME/.aws/late" 2>&1' &
	for i in $(seq 50); do [ -e go ] && break; sleep 0.1; done
	mkdir -p "$HOME/.aws" && echo KEY >"$HOME/.aws/late" && echo >made
	wait)
has "a secret made meanwhile" "$out" 'No such file'
has "/etc/shadow" "$(pf -- cat /etc/shadow 2>&1)" 'No such file'
finish
