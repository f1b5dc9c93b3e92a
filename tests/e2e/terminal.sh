#!/bin/bash
# Terminals: raw mode, window size, Ctrl-C, Ctrl-Z, job control inside. The talks are in pty_cases.py.
. "$(dirname "$0")/lib.sh"
command -v python3 >/dev/null || skip_all "no python3"
exec python3 "$e2e_dir/pty_cases.py" "$PINFOLD"
