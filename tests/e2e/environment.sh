#!/bin/bash
# Only listed variables are passed.
. "$(dirname "$0")/lib.sh"

export AWS_SECRET_ACCESS_KEY=hunter2 GITHUB_TOKEN=t LC_MONETARY=C FOO=bar
out=$(pf -- env)
hasnt "secrets stay outside" "$out" 'hunter2|GITHUB_TOKEN|FOO='
has "PATH is there" "$out" '^PATH='
has "HOME is there" "$out" '^HOME='
has "LC_* is there" "$out" '^LC_MONETARY=C'
has "PWD is true" "$out" "^PWD=$PWD\$"
has "-e NAME" "$(pf -e FOO -- env)" '^FOO=bar$'
has "-e NAME=VALUE" "$(pf -e FOO=other -e EMPTY= -- env)" '^FOO=other$'
has "empty value" "$(pf -e EMPTY= -- env)" '^EMPTY=$'
has "--env-all" "$(pf --env-all -- env)" 'hunter2'
is "/proc/self/environ agrees" "$(pf -e A=1 -- sh -c 'cat /proc/self/environ | tr "\0" "\n" | grep ^A=')" A=1
hasnt "not in a parent's environ" "$(pf -- sh -c 'cat /proc/[0-9]*/environ 2>/dev/null | tr "\0" "\n"')" hunter2
is "without HOME and PATH" "$(env -u HOME -u PATH "$PINFOLD" run -- sh -c 'echo ${HOME-unset}; ls / >/dev/null && echo ran')" "unset
ran"
finish
