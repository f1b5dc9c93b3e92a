/* Lets fs/ ask about the calling task. */
#pragma once

/* Once, before the first task runs. */
void task_hooks_install(void);
