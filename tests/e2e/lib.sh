# Helpers for end-to-end tests: TAP output, pinfold in $PINFOLD. Sourced, not run.
# A script runs in an empty directory of its own; tests/run sees to that, and by hand it makes one.
set -u
e2e_dir=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
PINFOLD=${PINFOLD:-$(cd "$e2e_dir/../.." && pwd)/pinfold}
[ -x "$PINFOLD" ] || { echo "# no $PINFOLD; run make"; exit 1; }
if [ -z "${ROOT:-}" ]; then
	e2e_scratch=$(mktemp -d) && cd "$e2e_scratch" || exit 1
	trap 'cd /; chmod -R u+rwx "$e2e_scratch"; rm -rf "$e2e_scratch"' EXIT
fi
number=0 failures=0

pass() { number=$((number + 1)); echo "ok $number - $1"; }
flunk() { # NAME [WHY...]
	number=$((number + 1)) failures=$((failures + 1))
	local name=$1
	shift
	[ $# = 0 ] || printf '%s\n' "$@" | head -n 25 | cut -c1-300 | sed 's/^/# /'
	echo "not ok $number - $name"
}
skip() { number=$((number + 1)); echo "ok $number - $1 # SKIP $2"; }
skip_all() { echo "1..0 # SKIP $1"; exit 77; }
finish() { echo "1..$number"; [ "$failures" = 0 ]; exit; }

# is NAME GOT WANT
is() { if [ "$2" = "$3" ]; then pass "$1"; else flunk "$1" "got:  $2" "want: $3"; fi; }
# has NAME TEXT PATTERN (extended regular expression)
has() { if grep -qE -- "$3" <<<"$2"; then pass "$1"; else flunk "$1" "got: $2" "wanted a match of: $3"; fi; }
hasnt() { if grep -qE -- "$3" <<<"$2"; then flunk "$1" "got: $2" "wanted no match of: $3"; else pass "$1"; fi; }
# status NAME WANT COMMAND...: exit status; output of a failure is shown
status() {
	local name=$1 want=$2 out rc
	shift 2
	out=$("$@" 2>&1)
	rc=$?
	if [ $rc = "$want" ]; then pass "$name"; else flunk "$name" "exit status $rc, want $want" "$out"; fi
}
pf() { timeout -k 5 "${LIMIT:-60}" "$PINFOLD" run "$@"; }
# same NAME COMMAND...: same stdout and status inside as natively
same() {
	local name=$1 want got wrc grc
	shift
	want=$("$@" 2>/dev/null </dev/null; echo "status $?")
	got=$(pf -- "$@" 2>err.same </dev/null; echo "status $?")
	if [ "$want" = "$got" ]; then
		pass "$name"
	else
		flunk "$name" "$(diff <(echo "$want") <(echo "$got") | head -n 10)" "$(head -n 5 err.same)"
	fi
}
# A copy of the binary under a name of its own, so that its processes can be told from all others.
own_binary() { cp "$PINFOLD" ./pf-own && own=$PWD/pf-own; }
# Processes that run the copy.
own_processes() {
	local p
	for p in /proc/[0-9]*; do
		[ "$(readlink "$p/exe" 2>/dev/null)" = "$own" ] && grep -qv '^State:.*[ZX]' <(grep ^State "$p/status" 2>/dev/null) && echo "${p#/proc/}"
	done
	return 0
}
# gone NAME: within five seconds no process of the copy is left
gone() {
	local i left
	for i in $(seq 50); do
		left=$(own_processes)
		[ -z "$left" ] && { pass "$1"; return; }
		sleep 0.1
	done
	flunk "$1" "left: $(for i in $left; do echo "$i $(tr '\0' ' ' <"/proc/$i/cmdline" 2>/dev/null)"; done)"
	kill -KILL $left 2>/dev/null
}
