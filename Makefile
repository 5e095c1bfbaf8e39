# dftrace: see README.md. `make V=1` shows commands, `make SAN=1` builds with ASan and UBSan.
.DEFAULT_GOAL := all
SHELL := /bin/bash

PREFIX ?= /usr/local
DESTDIR ?=
CC ?= gcc
CFLAGS ?= -O2 -g
PKG_CONFIG ?= pkg-config
PYTHON ?= /usr/bin/python3
VERSION := $(shell cat VERSION)
ARCH := x86_64

B := $(if $(SAN),build/san,build)
# Set by `make static`.
STATIC ?=
Q := $(if $(V),,@)
say = $(if $(V),,@printf '  %-4s %s\n' $(1) $(2))

comma := ,
# There is no static libudev, which hwloc wants.
topology := $(if $(STATIC),sysfs,hwloc)
# ISA-L compresses ten times as fast; there is no static one.
isal := $(if $(STATIC),,$(shell $(PKG_CONFIG) --exists libisal 2>/dev/null && echo libisal))
LIBS := libseccomp libelf zlib $(isal) libmd capstone yaml-0.1 $(if $(STATIC),,hwloc)
warnings := -Wall -Wextra -Wshadow -Wstrict-prototypes -Wmissing-prototypes -Wpointer-arith -Werror
san_flags := $(if $(SAN),-fsanitize=address$(comma)undefined -fno-sanitize-recover=undefined -fno-omit-frame-pointer)
# Asked for only when something is compiled, so that `make setup` works before the libraries are there.
pkg_cflags = $(shell $(PKG_CONFIG) --cflags $(LIBS))
pkg_libs = $(shell $(PKG_CONFIG) $(if $(STATIC),--static) --libs $(LIBS)) -lstdc++ -lpthread
# What dftrace-run loads it loads for each program, and then copies in two forks: the addresses that the loader
# writes into large libraries, and into a position independent program, are most of that. So where there are static
# forms they are taken.
light = $(if $(STATIC)$(SAN),-l$(1),$(if $(wildcard $(shell $(CC) -print-file-name=lib$(1).a)),\
	-Wl$(comma)-Bstatic -l$(1) -Wl$(comma)-Bdynamic,-l$(1)))
run_libs = $(foreach l,$(pkg_libs),$(if $(filter -lcapstone -lstdc++,$(l)),$(call light,$(l:-l%=%)),$(l)))
link_flags = $(if $(STATIC),-static,-no-pie) $(LDFLAGS)
library_versions = $(shell for l in $(LIBS); do echo $$l $$($(PKG_CONFIG) --modversion $$l); done | paste -sd, | sed "s|,|, |g")
all_cflags = -std=gnu17 $(warnings) $(CFLAGS) $(san_flags) -I. -I$(B) $(pkg_cflags) -D_GNU_SOURCE $(CPPFLAGS)

rooms := base writer seccomp symbols tracer tracer/hooks tracer/recorder tracer/arch/$(ARCH) launchers
lib_sources := $(filter-out launchers/main.c tracer/topology-%.c writer/deflater-%.c,\
	$(wildcard $(addsuffix /*.c,$(rooms)))) \
	tracer/topology-$(topology).c writer/deflater-$(if $(isal),isal,zlib).c
# What the recorder puts into programs; it is data to the tracer.
agent_objects := $(patsubst %.S,$(B)/obj/%.o,$(wildcard tracer/recorder/agent/*.S))
lib_objects := $(lib_sources:%.c=$(B)/obj/%.o) $(agent_objects)
main_object := $(B)/obj/launchers/main.o
# dftrace-check knows the format of traces only, and has libraries of its own.
check_sources := $(filter-out check/main.c,$(wildcard check/*.c))
check_objects := $(check_sources:%.c=$(B)/obj/%.o)
check_main := $(B)/obj/check/main.o
check_libs = $(shell $(PKG_CONFIG) --libs jansson zlib $(isal) libmd)
unit_tests := $(patsubst tests/unit/%.c,$(B)/tests/unit/%,$(wildcard tests/unit/test_*.c))
programs := $(patsubst tests/programs/%.c,$(B)/tests/programs/%,\
	$(filter-out $(addprefix tests/programs/,hooks_lib.c recorder_lib.c alone.c),\
	$(wildcard tests/programs/*.c))) \
	$(addprefix $(B)/tests/programs/,hooks_lib.so hooks_other.so)

fuzz_targets := $(patsubst tests/fuzz/fuzz_%.c,%,$(wildcard tests/fuzz/fuzz_*.c))
fuzz_replays := $(fuzz_targets:%=$(B)/tests/fuzz/%)
# Set by `make fuzz`: libFuzzer has the main function.
FUZZER ?=
fuzz_main := $(if $(FUZZER),,tests/fuzz/replay.c)

.PHONY: all static setup demo test test-full unit programs examples replays fuzz lint lint-code format bench install uninstall clean

all: $(addprefix $(B)/,dftrace-run dftrace-run.1 dftrace-check dftrace-check.1) \
	$(addprefix $(B)/completions/,dftrace-run dftrace-check)

# One file that needs no libraries where it runs.
static:
	$(Q)for l in seccomp elf z md capstone yaml stdc++ c; do \
		[ -f "$$($(CC) -print-file-name=lib$$l.a)" ] || \
			{ echo "make static: there is no lib$$l.a; install the static form of lib$$l" >&2; exit 1; }; \
	done
	$(Q)$(MAKE) --no-print-directory STATIC=1 SAN= B=build/static build/static/dftrace-run

$(B)/version.h: VERSION Makefile
	$(Q)mkdir -p $(@D)
	$(Q)printf '#define DFTRACE_%s "%s"\n' VERSION '$(VERSION)' \
		BUILD '$(ARCH), $(if $(STATIC),static,dynamic)$(if $(SAN),$(comma) sanitized)' \
		LIBRARIES '$(library_versions)' >$@

$(B)/obj/%.o: %.c $(B)/version.h
	$(call say,CC,$<)
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) $(all_cflags) -MMD -MP -c $< -o $@

$(agent_objects): $(B)/obj/%.o: %.S tracer/recorder/agent/layout.h
	$(call say,AS,$<)
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) -I. -c $< -o $@

$(B)/libdftrace.a: $(lib_objects)
	$(call say,AR,$@)
	$(Q)rm -f $@
	$(Q)$(AR) rcs $@ $^

$(B)/dftrace-run: $(main_object) $(B)/libdftrace.a
	$(call say,LD,$@)
	$(Q)$(CC) $(all_cflags) $(link_flags) $^ $(run_libs) -o $@

# The manual page comes from the option table, as --help does.
$(B)/man-page: tools/man-page.c tools/man-text.c $(B)/libdftrace.a
	$(call say,CC,$<)
	$(Q)$(CC) $(all_cflags) $(LDFLAGS) $^ $(pkg_libs) -o $@

$(B)/dftrace-run.1: $(B)/man-page
	$(call say,GEN,$@)
	$(Q)$(B)/man-page >$@

$(B)/libcheck.a: $(check_objects)
	$(call say,AR,$@)
	$(Q)rm -f $@
	$(Q)$(AR) rcs $@ $^

$(B)/dftrace-check: $(check_main) $(B)/libcheck.a $(B)/libdftrace.a
	$(call say,LD,$@)
	$(Q)$(CC) $(all_cflags) $(LDFLAGS) $^ $(check_libs) -o $@

$(B)/man-check: tools/man-check.c tools/man-text.c $(B)/libcheck.a $(B)/libdftrace.a
	$(call say,CC,$<)
	$(Q)$(CC) $(all_cflags) $(LDFLAGS) $^ $(check_libs) -o $@

$(B)/dftrace-check.1: $(B)/man-check
	$(call say,GEN,$@)
	$(Q)$(B)/man-check >$@

$(B)/completion: tools/completion.c tools/man-text.c $(B)/libcheck.a $(B)/libdftrace.a
	$(call say,CC,$<)
	$(Q)$(CC) $(all_cflags) $(LDFLAGS) $^ $(check_libs) $(pkg_libs) -o $@

$(B)/completions/%: $(B)/completion tools/completion.bash
	$(call say,GEN,$@)
	$(Q)mkdir -p $(@D)
	$(Q){ $(B)/completion $(@F); cat tools/completion.bash; echo; echo complete -F PROGRAM $(@F); } | \
		sed 's/PROGRAM/_$(subst -,_,$(@F))/g' >$@

$(B)/tests/unit/test_check_%: tests/unit/test_check_%.c $(B)/libcheck.a $(B)/libdftrace.a
	$(call say,CC,$<)
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) $(all_cflags) -MMD -MP $< $(B)/libcheck.a $(B)/libdftrace.a $(check_libs) -lcmocka -o $@

$(B)/tests/unit/%: tests/unit/%.c $(B)/libdftrace.a
	$(call say,CC,$<)
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) $(all_cflags) -MMD -MP $< $(B)/libdftrace.a $(pkg_libs) -lcmocka -o $@

$(B)/tests/programs/%: tests/programs/%.c
	$(call say,CC,$<)
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) -std=gnu17 -D_GNU_SOURCE -Wall -Wextra -Werror -O2 -g -pthread -MMD -MP $< -o $@

# Two libraries that are loaded in turn, where the other one's code was.
$(B)/tests/programs/hooks_%.so: tests/programs/hooks_lib.c
	$(call say,CC,$@)
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) -std=gnu17 -Wall -Wextra -Werror -O2 -g -shared -fPIC $(if $(filter other,$*),-DOTHER) $< -o $@

# A target of fuzzing that reads files.
$(B)/tests/fuzz/%: tests/fuzz/fuzz_%.c tests/fuzz/files.c $(fuzz_main) $(B)/libcheck.a $(B)/libdftrace.a
	$(call say,CC,$<)
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) $(all_cflags) $(if $(FUZZER),-fsanitize=fuzzer) $(filter %.c %.a,$^) $(B)/libdftrace.a $(pkg_libs) $(check_libs) -o $@

replays: $(fuzz_replays)

unit: $(unit_tests)
programs: $(programs)

-include $(lib_objects:.o=.d) $(main_object:.o=.d) $(check_objects:.o=.d) $(check_main:.o=.d) $(unit_tests:=.d) $(programs:=.d)

# TESTS="cases/test_x.py -k word" chooses. The libraries may have to be installed first, hence the second make.
test:
	$(Q)tools/setup build demo test
	$(Q)tests/compat/install build/venv
	$(Q)$(MAKE) --no-print-directory all static unit programs examples replays
	$(Q)$(PYTHON) tests/run.py $(B) $(TESTS)

# Takes hours. PART="long rungs static sanitized" chooses.
test-full:
	$(Q)tools/setup build demo test
	$(Q)tests/compat/install build/venv --full
	$(Q)$(MAKE) --no-print-directory all static unit programs examples replays
	$(Q)$(MAKE) --no-print-directory SAN=1 all unit programs examples replays
	$(Q)$(PYTHON) tests/run.py $(B) --full $(PART:%=--part=%) --sanitized=build/san $(TESTS)

# SECONDS_EACH=600 for longer; FUZZ=traces for one target. What is found stays in build/fuzz/found.
fuzz:
	$(Q)tools/setup build fuzz
	$(Q)$(MAKE) --no-print-directory B=build/fuzz CC=clang FUZZER=1 replays \
		CFLAGS='-O1 -g -fno-omit-frame-pointer -fsanitize=fuzzer-no-link,address,undefined -fno-sanitize-recover=undefined'
	$(Q)tests/fuzz/run build/fuzz $(or $(SECONDS_EACH),60) $(FUZZ)

setup:
	$(Q)tools/setup

$(B)/examples/fortran_io.%: examples/fortran-static/fortran_io.f90 examples/fortran-static/Makefile
	$(call say,FC,$@)
	$(Q)tools/setup demo
	$(Q)$(MAKE) -s -C examples/fortran-static OUT=$(abspath $(B))/examples $(abspath $@)

$(B)/examples/mpiio.%: examples/fortran-mpiio-static/mpiio.f90 examples/fortran-mpiio-static/Makefile
	$(call say,FC,$@)
	$(Q)$(MAKE) -s -C examples/fortran-mpiio-static OUT=$(abspath $(B))/examples $(abspath $@)

$(B)/examples/hdf5_fields.%: examples/hdf5-static/fields.f90 examples/hdf5-static/Makefile
	$(call say,FC,$@)
	$(Q)$(MAKE) -s -C examples/hdf5-static OUT=$(abspath $(B))/examples $(abspath $@)

$(B)/examples/hdf5_rows.% $(B)/examples/hdf5_columns.%: $(wildcard examples/hdf5-parallel/*)
	$(call say,CC,$@)
	$(Q)$(MAKE) -s -C examples/hdf5-parallel OUT=$(abspath $(B))/examples \
		$(addprefix $(abspath $(B))/examples/,hdf5_rows.$* hdf5_columns.$*)

$(B)/examples/netcdf_weather: examples/netcdf-fortran/weather.f90 examples/netcdf-fortran/Makefile
	$(call say,FC,$@)
	$(Q)$(MAKE) -s -C examples/netcdf-fortran OUT=$(abspath $(B))/examples $(abspath $@)

$(B)/examples/steps.%: $(wildcard examples/annotate/*)
	$(call say,CC,$@)
	$(Q)$(MAKE) -s -C examples/annotate OUT=$(abspath $(B))/examples $(abspath $@)

examples: $(foreach l,c cpp f90,$(addprefix $(B)/examples/steps.$l.,static static-pie pie no-pie)) \
	$(addprefix $(B)/examples/fortran_io.,static static-pie pie no-pie) \
	$(addprefix $(B)/examples/mpiio.,static mpich openmpi) \
	$(addprefix $(B)/examples/hdf5_fields.,static static-pie dynamic) \
	$(foreach mpi,mpich openmpi mpich.static,$(addprefix $(B)/examples/,hdf5_rows.$(mpi) hdf5_columns.$(mpi))) \
	$(B)/examples/netcdf_weather

# The libraries have to be there before the makefile asks pkg-config for them, hence the second make.
demo:
	$(Q)tools/setup build demo
	$(Q)$(MAKE) --no-print-directory all $(B)/examples/fortran_io.static
	$(Q)tools/demo $(B)

lint:
	$(Q)tools/setup build lint test
	$(Q)$(MAKE) --no-print-directory lint-code

lint-code: $(B)/version.h
	$(Q)tools/lint -std=gnu17 -D_GNU_SOURCE $(warnings:-Werror=) -I. -I$(B) $(pkg_cflags)

$(B)/bench/%: bench/%.c
	$(call say,CC,$<)
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) -std=gnu17 -D_GNU_SOURCE -Wall -Wextra -Werror -O2 -pthread $< -o $@

# ROUNDS=9 for a quieter result, ONLY=recorder for these rows alone. Figures, never a test: a missed aim does not fail.
bench:
	$(Q)tools/setup build
	$(Q)tools/setup bench || true
	$(Q)$(MAKE) --no-print-directory all $(patsubst bench/%.c,$(B)/bench/%,$(wildcard bench/*.c))
	$(Q)$(PYTHON) bench/run.py --build $(B) --rounds $(or $(ROUNDS),5) $(if $(ONLY),--only $(ONLY))

install: all
	install -D -m 755 $(B)/dftrace-run $(DESTDIR)$(PREFIX)/bin/dftrace-run
	install -D -m 755 $(B)/dftrace-check $(DESTDIR)$(PREFIX)/bin/dftrace-check
	install -D -m 644 $(B)/dftrace-run.1 $(DESTDIR)$(PREFIX)/share/man/man1/dftrace-run.1
	install -D -m 644 $(B)/dftrace-check.1 $(DESTDIR)$(PREFIX)/share/man/man1/dftrace-check.1
	install -D -m 644 $(B)/completions/dftrace-run $(DESTDIR)$(PREFIX)/share/bash-completion/completions/dftrace-run
	install -D -m 644 $(B)/completions/dftrace-check $(DESTDIR)$(PREFIX)/share/bash-completion/completions/dftrace-check

uninstall:
	rm -f $(addprefix $(DESTDIR)$(PREFIX)/bin/,dftrace-run dftrace-check)
	rm -f $(addprefix $(DESTDIR)$(PREFIX)/share/man/man1/,dftrace-run.1 dftrace-check.1)
	rm -f $(addprefix $(DESTDIR)$(PREFIX)/share/bash-completion/completions/,dftrace-run dftrace-check)

format:
	clang-format -i $(shell git ls-files '*.c' '*.h')

clean:
	rm -rf build
