/* Entry points of run.c besides the command itself (runtime/commands.def). */
#pragma once

/* `pinfold -c STRING [NAME ARG...]`: pinfold as a shell. argv is main's. Returns the exit status.
 */
int shell_shim(int argc, char **argv);
