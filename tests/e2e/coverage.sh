#!/bin/bash
# The committed coverage page is what the table says; `make coverage` writes it anew.
. "$(dirname "$0")/lib.sh"

page=$e2e_dir/../../docs/COVERAGE.md
[ -e "$page" ] || skip_all "no docs/COVERAGE.md"
if diff <("$PINFOLD" syscalls --format=md) "$page" >diff.out; then pass "docs/COVERAGE.md is up to date"; else flunk "docs/COVERAGE.md is up to date" "run make coverage" "$(head -n 10 diff.out)"; fi
finish
