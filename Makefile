# pinfold: build, test and measure. `make help` lists the targets.
#
# Sources are found by wildcards: a new .c file in a known folder is built, a new test is run, and
# nothing here has to change. MODE picks the flags; each mode has its own directory below $(O).

O ?= build
MODE ?= release
CC = gcc
Q := $(if $(V),,@)
say = $(if $(V),,@echo "  $(1) $(2)")
CLANG ?= clang
JOBS ?= $(shell nproc 2>/dev/null || echo 2)
VERSION := 0.1.0

# ---- sources -------------------------------------------------------------------------------------

SRC_DIRS := platform gofer fs netstack sentry syscalls runtime
ALL_C := $(foreach d,$(SRC_DIRS),$(wildcard $(d)/*.c $(d)/*/*.c $(d)/*/*/*.c))
ALL_S := $(foreach d,$(SRC_DIRS),$(wildcard $(d)/*.S $(d)/*/*.S $(d)/*/*/*.S))
# Tools that run on the build machine, and platforms that only tests link.
TOOL_C := platform/host/gen_filter.c
QUICK_C := platform/host/quick_start.c
TEST_ONLY_C := $(wildcard platform/fake.c platform/skeleton.c)
LIB_C := $(filter-out $(TOOL_C) $(QUICK_C) $(TEST_ONLY_C) runtime/main.c,$(ALL_C))
HEADERS := $(foreach d,$(SRC_DIRS),$(wildcard $(d)/*.h $(d)/*/*.h $(d)/*/*/*.h))
UNIT_C := $(wildcard tests/unit/*_test.c)
UNIT_HELP_C := $(filter-out $(UNIT_C),$(wildcard tests/unit/*.c))
GUEST_C := $(wildcard tests/guest/*_test.c)
ATTACK_C := $(wildcard tests/attack/*.c)
FUZZ_C := $(wildcard tests/fuzz/*_fuzz.c)

# ---- flags ---------------------------------------------------------------------------------------

WERROR ?= -Werror
WARN := -Wall -Wextra -Wshadow -Wvla -Wstrict-prototypes -Wmissing-prototypes -Wcast-qual -Wundef $(WERROR)
GEN := $(O)/gen
BASE_FLAGS := -std=c11 -D_GNU_SOURCE -DPINFOLD_VERSION='"$(VERSION)"' $(WARN) -fno-strict-aliasing \
	-pthread -I. -I$(GEN)

FLAGS_release := -O2 -g -fPIE -fstack-protector-strong -D_FORTIFY_SOURCE=2
LINK_release := -static-pie -pthread -Wl,-z,relro,-z,now,-z,noexecstack
FLAGS_debug := -O1 -g -fPIE -DPINFOLD_DEBUG -fstack-protector-strong -fno-omit-frame-pointer
LINK_debug := -static-pie -pthread
FLAGS_asan := -O1 -g -fPIE -DPINFOLD_DEBUG -fno-omit-frame-pointer -fsanitize=address,undefined \
	-fno-sanitize-recover=undefined
LINK_asan := -pie -pthread -fsanitize=address,undefined
FLAGS_tsan := -O1 -g -fPIE -DPINFOLD_DEBUG -fno-omit-frame-pointer -fsanitize=thread
LINK_tsan := -pie -pthread -fsanitize=thread
# The fuzz build is also the proof that clang compiles everything without a warning and that its
# lock analysis agrees.
FLAGS_fuzz := -O1 -g -fPIE -DPINFOLD_DEBUG -fno-omit-frame-pointer -Wthread-safety \
	-fsanitize=fuzzer-no-link,address,undefined -fno-sanitize-recover=undefined
LINK_fuzz := -pie -pthread -fsanitize=fuzzer,address,undefined
ifeq ($(MODE),fuzz)
override CC := $(CLANG)
endif

CFLAGS_ALL = $(BASE_FLAGS) $(FLAGS_$(MODE)) $(CFLAGS)
# Code that runs inside a stub: position independent, no libc, no vector registers, no canaries.
STUB_CFLAGS := -O2 -g -ffreestanding -fPIC -fvisibility=hidden -fno-stack-protector \
	-mgeneral-regs-only -fcf-protection=none -fno-jump-tables -fno-builtin \
	-fno-asynchronous-unwind-tables -fomit-frame-pointer -U_FORTIFY_SOURCE
ifneq ($(MODE),fuzz)
STUB_CFLAGS += -fno-tree-loop-distribute-patterns
endif
ifneq ($(MODE),release)
STUB_CFLAGS += -DPINFOLD_DEBUG
endif

# A library is linked when some source includes its header.
uses = $(if $(shell grep -lE '^\#include <$(1)' $(LIB_C) /dev/null 2>/dev/null),$(2))
LIBS := $(call uses,seccomp.h,-lseccomp) $(call uses,jansson.h,-ljansson) \
	$(call uses,capstone/,-lcapstone) $(call uses,libunwind,-lunwind-x86_64 -lunwind -llzma)

# ---- objects -------------------------------------------------------------------------------------

B := $(O)/$(MODE)
obj = $(patsubst %,$(B)/%.o,$(1))
LIB_O := $(call obj,$(LIB_C) $(ALL_S))
MAIN_O := $(call obj,$(wildcard runtime/main.c))
TEST_LIB_O := $(call obj,$(TEST_ONLY_C) $(UNIT_HELP_C))
FILTER_H := $(if $(wildcard $(TOOL_C)),$(GEN)/host_filter.h)

.PHONY: all debug asan tsan release help
all: release
release:
	@$(MAKE) --no-print-directory MODE=release binary
	@if [ "$(O)" = build ]; then cmp -s build/release/pinfold pinfold || cp build/release/pinfold pinfold; fi
debug asan tsan:
	@$(MAKE) --no-print-directory MODE=$@ binary

.PHONY: binary lib
binary: $(B)/pinfold
lib: $(B)/libpinfold.a

$(B)/pinfold: $(MAIN_O) $(LIB_O) $(GEN)/quick_start
	$(Q)mkdir -p $(@D)
	$(call say,LINK,$@)
	$(Q)$(CC) $(LINK_$(MODE)) -o $@.tmp $(MAIN_O) $(LIB_O) $(LIBS)
	$(Q)$(if $(filter release,$(MODE)),$(GEN)/quick_start $@.tmp)
	$(Q)mv $@.tmp $@

# An archive, so that a test can replace an object by defining all its symbols.
$(B)/libpinfold.a: $(LIB_O)
	$(Q)mkdir -p $(@D)
	$(Q)rm -f $@
	$(Q)ar rcs $@ $^
$(B)/libtest.a: $(TEST_LIB_O)
	$(Q)mkdir -p $(@D)
	$(Q)rm -f $@
	$(Q)ar rcs $@ $^

$(B)/%.c.o: %.c | $(FILTER_H)
	$(Q)mkdir -p $(@D)
	$(call say,CC  ,$@)
	$(Q)$(CC) $(CFLAGS_ALL) -MMD -MP -c -o $@ $<
$(B)/platform/stub/blob_%.c.o: platform/stub/blob_%.c
	$(Q)mkdir -p $(@D)
	$(call say,CC  ,$@)
	$(Q)$(CC) $(BASE_FLAGS) $(STUB_CFLAGS) -MMD -MP -c -o $@ $<
$(B)/%.S.o: %.S
	$(Q)mkdir -p $(@D)
	$(call say,AS  ,$@)
	$(Q)$(CC) $(BASE_FLAGS) -fPIC -MMD -MP -c -o $@ $<

# What makes the linked binary start faster: see the tool.
$(GEN)/quick_start: $(QUICK_C)
	$(Q)mkdir -p $(@D)
	$(call say,TOOL,$@)
	$(Q)gcc -std=c11 -D_GNU_SOURCE $(WARN) -O1 -I. -o $@ $<

# The host filters are computed on the build machine and are data in the binary.
$(GEN)/gen_filter: $(TOOL_C) platform/host/host.def
	$(Q)mkdir -p $(@D)
	$(call say,TOOL,$@)
	$(Q)gcc -std=c11 -D_GNU_SOURCE $(WARN) -O1 -I. -o $@ $< -lseccomp
$(GEN)/host_filter.h: $(GEN)/gen_filter
	$(Q)$< > $@.tmp && mv $@.tmp $@

-include $(patsubst %.o,%.d,$(LIB_O) $(MAIN_O) $(TEST_LIB_O)) $(wildcard $(B)/tests/unit/*.d $(B)/tests/fuzz/*.d)

# ---- test programs -------------------------------------------------------------------------------

.PHONY: unit-tests guest-tests attack-tests fuzz-tests
UNIT_T := $(patsubst tests/unit/%.c,$(B)/unit/%,$(UNIT_C))
unit-tests: $(UNIT_T)
$(B)/unit/%: $(B)/tests/unit/%.c.o $(B)/libtest.a $(B)/libpinfold.a
	$(Q)mkdir -p $(@D)
	$(call say,LINK,$@)
	$(Q)$(CC) $(LINK_$(MODE)) -o $@ $< -Wl,--start-group $(B)/libtest.a $(B)/libpinfold.a -Wl,--end-group \
		-lcmocka $(LIBS)

GUEST_FLAGS := -std=gnu11 -D_GNU_SOURCE= -O1 -g -static -pthread -Wall -Wextra -Werror -Wno-unused-parameter -I.
GUEST_T := $(patsubst tests/guest/%.c,$(O)/guest/%,$(GUEST_C))
guest-tests: $(GUEST_T)
$(O)/guest/%: tests/guest/%.c tests/guest/t.h
	$(Q)mkdir -p $(@D)
	$(call say,GUEST,$@)
	$(Q)gcc $(GUEST_FLAGS) -o $@ $<
ATTACK_T := $(patsubst tests/attack/%.c,$(O)/attack/%,$(ATTACK_C))
attack-tests: $(ATTACK_T)
$(O)/attack/%: tests/attack/%.c tests/guest/t.h
	$(Q)mkdir -p $(@D)
	$(call say,GUEST,$@)
	$(Q)gcc $(GUEST_FLAGS) -o $@ $<

FUZZ_T := $(patsubst tests/fuzz/%.c,$(B)/fuzz/%,$(FUZZ_C))
fuzz-tests: $(FUZZ_T)
$(B)/fuzz/%: $(B)/tests/fuzz/%.c.o $(B)/libtest.a $(B)/libpinfold.a
	$(Q)mkdir -p $(@D)
	$(call say,LINK,$@)
	$(Q)$(CC) $(LINK_$(MODE)) -o $@ $< -Wl,--start-group $(B)/libtest.a $(B)/libpinfold.a -Wl,--end-group $(LIBS)

.SECONDARY:

# ---- checks --------------------------------------------------------------------------------------

.PHONY: check check-lint check-unit check-guest check-attack check-fuzz check-e2e
check: deps-check
	@O=$(O) JOBS=$(JOBS) MAKE="$(MAKE)" tests/run lint unit fuzz guest attack e2e
check-lint check-unit check-fuzz check-guest check-attack check-e2e:
	@O=$(O) JOBS=$(JOBS) MAKE="$(MAKE)" tests/run $(patsubst check-%,%,$@)

.PHONY: format bench coverage
coverage: release
	@./pinfold syscalls --format=md > docs/COVERAGE.md
format:
	clang-format --style=file:tests/lint/clang-format -i $(ALL_C) $(HEADERS)
bench: release
	@tests/bench/run

# ---- dependencies --------------------------------------------------------------------------------

.PHONY: deps deps-run deps-check
# Installs with apt what is missing, and says so.
deps:
	@tests/deps check
deps-run:
	@tests/deps --quiet run
deps-check:
	@tests/deps --quiet check

.PHONY: run clean
run: deps-run
	@$(MAKE) --no-print-directory -j$(JOBS) release
	./pinfold run -- /bin/sh -c 'uname -a; id; ls -l /; echo "hello from inside, pid $$$$"'

clean:
	rm -rf build pinfold

help:
	@echo "make            ./pinfold, the static release binary"
	@echo "make run        install what is missing, build, run a program inside"
	@echo "make check      all tests; check-lint check-unit check-guest check-attack check-fuzz check-e2e"
	@echo "make debug      build/debug/pinfold: assertions, lock order; also: asan, tsan"
	@echo "make bench      start time, memory and call costs against other sandboxes"
	@echo "make coverage   docs/COVERAGE.md from the table of system calls"
	@echo "make format     clang-format over the sources"
	@echo "make deps       install the Debian packages that building and testing need"
	@echo "O=DIR           build below DIR instead of build/"
