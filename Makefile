# gpushare: make (library and tool), make demo, make test, make check, make check-gpu, make install.
#
# BUILD=dir       where everything goes (build)
# CUDA_HOME=dir   where include/cuda.h is (found by itself in the usual places)
# SANITIZE=x      address, thread or undefined: a build of its own in $(BUILD)-x
# CC, CXX         also a cross compiler, as aarch64-linux-gnu-gcc

VERSION := 0.3.0
# V=1 shows the commands
V ?= 0
ifeq ($(V),0)
.SILENT:
endif
BUILD ?= build
SANITIZE ?=
PLAIN := $(BUILD)
ifneq ($(SANITIZE),)
override BUILD := $(BUILD)-$(SANITIZE)
SANITIZE_FLAGS := -fsanitize=$(SANITIZE:address=address,undefined) -fno-sanitize-recover=all -fno-omit-frame-pointer
ifeq ($(SANITIZE),thread)
# Its own clone takes a child that shares the parent's memory for a fork, and sees no lock of the parent's thread any more.
SANITIZE_FLAGS += -Dclone=__clone
# gcc says of each fence that the sanitizer does not see it.
SANITIZE_FLAGS += $(if $(findstring clang,$(CC)),,-Wno-tsan)
SIM_EXTRA += -Dclone=__clone
endif
endif
CUDA_HOME ?= $(patsubst %/include/cuda.h,%,$(firstword $(wildcard \
	/usr/local/cuda/include/cuda.h /opt/cuda/include/cuda.h /usr/lib/cuda/include/cuda.h /usr/include/cuda.h)))
CUDA_INC := $(CUDA_HOME)/include
NVCC := $(firstword $(wildcard $(CUDA_HOME)/bin/nvcc) nvcc)

# The rooms of shim/ from the bottom up: one includes itself and those before it, never one after it. Of the vendors'
# rooms, the last two, each library has its own.
ROOMS := util config directory keeper log driver stack python process threads registry findings vmm digest gate frames merge learn ipc writes rules suspend lifecycle calls doors cuda hip
TOOL_ROOMS := cli logs symbols report timeline directory top run suspend learn matching selftest doctor keeper
WARNINGS := -Wall -Wextra -Wconversion -Wshadow -Werror
# Instrumented, more optimisation mostly takes longer to compile.
CFLAGS ?= $(if $(SANITIZE),-O1 -g1,-O2 -g)
COMMON := -pthread $(WARNINGS) $(SANITIZE_FLAGS) -Iinclude -Ishim -Itools -isystem $(CUDA_INC) -MMD -MP
C_FLAGS := -std=gnu11 -D_GNU_SOURCE= $(CFLAGS) $(COMMON)
CXX_FLAGS := -std=gnu++17 $(CFLAGS) $(COMMON)

.DEFAULT_GOAL := all
.PHONY: all bench demo docs test check fuzz-run check-gpu gpu-programs install uninstall clean
all: $(BUILD)/libgpushare.so $(BUILD)/libgpushare-hip.so $(BUILD)/gpushare

# --- glibc from 2.28 on: shim/compat/README.md --------------------------------------------------------

# Sanitizers need newer ones.
ifeq ($(SANITIZE),)
LIBRARY_COMPAT := $(BUILD)/shim/compat/stat.o $(BUILD)/shim/compat/unwinder.o
TOOL_COMPAT := $(BUILD)/shim/compat/stat.o $(BUILD)/shim/compat/libc_start.o
OLD_LIBRARIES := $(patsubst shim/compat/old/%.txt,$(BUILD)/shim/compat/%,$(wildcard shim/compat/old/*.txt))
OLD_LINK := -Wl,--wrap=__libc_start_main,--no-as-needed $(OLD_LIBRARIES) -Wl,--as-needed
endif
$(BUILD)/shim/compat/%.o: shim/compat/%.c
	@mkdir -p $(@D); echo "  CC    $<"
	$(CC) $(C_FLAGS) -fPIC -fvisibility=hidden -c $< -o $@

OLDEST_VERSION := $(if $(findstring x86_64,$(shell $(CC) -dumpmachine)),GLIBC_2.2.5,GLIBC_2.17)
$(OLD_LIBRARIES): $(BUILD)/shim/compat/%: shim/compat/old/%.txt
	@mkdir -p $(@D); echo "  STUB  $@"
	sed 's/.*/.globl &; .type &, %function; &:/' $< | $(CC) -c -x assembler - -o $@.o
	{ echo '$(OLDEST_VERSION) {'; sed 's/$$/;/' $<; echo '};'; } >$@.map
	$(CC) -shared -nostdlib -Wl,-soname,$*,--version-script=$@.map $@.o -o $@

# --- the library -----------------------------------------------------------------------------------

room = $(patsubst shim/%.c,$(BUILD)/shim/%.o,$(wildcard shim/$(1)/*.c))
# What runs while the library loads comes first: beside its tables, in pages that are there already.
EARLY := $(patsubst %,$(BUILD)/shim/%.o,stack/module threads/thread util/linker)
COMMON_OBJECTS := $(EARLY) $(filter-out $(EARLY),$(foreach name,$(filter-out cuda hip,$(ROOMS)),$(call room,$(name))))
SHIM_OBJECTS := $(COMMON_OBJECTS) $(call room,cuda) $(addprefix $(BUILD)/shim/cuda/,trampoline.o stubs.o doors.o)
HIP_OBJECTS := $(COMMON_OBJECTS) $(call room,hip) $(BUILD)/shim/hip/hip_trampoline.o
SHIM_FLAGS := -fPIC -fvisibility=hidden -ftls-model=initial-exec

$(BUILD)/shim/%.o: shim/%.c
	@mkdir -p $(@D); echo "  CC    $<"
	$(CC) $(C_FLAGS) $(SHIM_FLAGS) -c $< -o $@

# The resolver runs inside sanitizer runtimes that are not up yet.
$(addprefix $(BUILD)/shim/stack/,module.o module_place.o find_object.o) $(BUILD)/shim/doors/resolver.o: SHIM_FLAGS += -fno-sanitize=all -fno-stack-protector

# The kernels are machine code for each family of cards that nvcc knows, so that the driver compiles nothing beside a
# program that serves, and PTX for later ones. Without nvcc there are none, and memory is read back instead.
KERNEL_FAMILIES := 75 80 90 100 120
$(BUILD)/kernels.fatbin: shim/cuda/kernels.cu
	@mkdir -p $(@D); echo "  NVCC  $<"
	if command -v $(NVCC) >/dev/null; then $(NVCC) -O3 -std=c++17 -fatbin --no-compress -gencode 'arch=compute_75,code=[compute_75]' \
		$$(for family in $(KERNEL_FAMILIES); do ! $(NVCC) --list-gpu-code | grep -qx sm_$$family || echo "-gencode arch=compute_$$family,code=sm_$$family"; done) \
		$< -o $@; else : >$@; fi
$(BUILD)/shim/cuda/kernels.o: $(BUILD)/kernels.fatbin
$(BUILD)/shim/cuda/kernels.o: C_FLAGS += -DGPS_KERNELS='"$(BUILD)/kernels.fatbin"'

$(BUILD)/shim/%.o: shim/%.S shim/doors/trampoline.inc
	@mkdir -p $(@D)
	$(CC) -fPIC -Ishim -c $< -o $@
$(BUILD)/shim/cuda/doors.o: shim/cuda/hooks.def

# The exports are exactly the rows of hooks.def, the two doors of trampoline.inc, and what ASan asks for.
EXPORTED := dlsym; dlvsym; __asan_default_options;
HOOKED := awk -f shim/doors/hooked.awk
$(BUILD)/exports.map: shim/cuda/hooks.def
$(BUILD)/exports-hip.map: shim/hip/hip_hooks.def
$(BUILD)/exports.map $(BUILD)/exports-hip.map: shim/doors/hooked.awk Makefile
	@mkdir -p $(@D)
	$(HOOKED) $(filter %.def,$^) | { echo '{ global: $(EXPORTED)'; sed 's/$$/;/'; echo 'local: *; };'; } >$@

# What a resolver is asked for each of them.
$(BUILD)/resolved.inc: shim/cuda/resolved.awk shim/doors/hooked.awk shim/cuda/hooks.def $(CUDA_INC)/cudaTypedefs.h Makefile
	@mkdir -p $(@D)
	$(HOOKED) shim/cuda/hooks.def | awk -f $< $(CUDA_INC)/cudaTypedefs.h shim/cuda/hooks.def - | LC_ALL=C sort -t'"' -k2,2 > $@
$(BUILD)/shim/cuda/resolved.o: $(BUILD)/resolved.inc
$(BUILD)/shim/cuda/resolved.o: C_FLAGS += -I$(BUILD)

# Lazy binding, one text segment, no mprotect, no empty _init and _fini, which lie far apart: what loading costs a
# program that never uses CUDA.
LIBRARY_OBJECTS = $(filter %.o,$^)
LINK_LIBRARY = $(CC) $(C_FLAGS) -shared -static-libgcc $(LIBRARY_OBJECTS) -o $@ -Wl,--version-script=$(filter %.map,$^) \
		-Wl,-z,defs,-z,noexecstack,-Bsymbolic-functions,--no-undefined-version \
		-Wl,-z,lazy,-z,norelro,-z,noseparate-code,-O1,--hash-style=gnu,-init=none,-fini=none \
		-Wl,-soname,$(@F) -Wl,--exclude-libs,ALL
$(BUILD)/libgpushare.so: $(SHIM_OBJECTS) $(LIBRARY_COMPAT) $(BUILD)/exports.map
	@echo "  LINK  $@"
	$(LINK_LIBRARY)
$(BUILD)/libgpushare-hip.so: $(HIP_OBJECTS) $(LIBRARY_COMPAT) $(BUILD)/exports-hip.map
	@echo "  LINK  $@"
	$(LINK_LIBRARY)

ifneq ($(findstring x86_64,$(shell $(CC) -dumpmachine)),)
$(BUILD)/shim/digest/digest_avx2.o: C_FLAGS += -mavx2
endif

# --- the tool --------------------------------------------------------------------------------------

# What the tool and the unit tests share with the library: everything that stands without a driver and
# hooks nothing. The linker takes from it what is used.
PARTS := $(foreach name,util config directory keeper log stack python registry,$(call room,$(name))) \
	$(patsubst %,$(BUILD)/shim/%.o,driver/scope threads/thread threads/watch findings/policy \
	process/control_group process/gpu_bytes process/membership process/process process/program process/references \
	digest/digest digest/digest_avx2 digest/worker_pool gate/gate frames/turn merge/area merge/layout)
$(BUILD)/libgpushare_parts.a: $(PARTS) Makefile
	rm -f $@
	$(AR) rcs $@ $(filter %.o,$^)

TOOL_OBJECTS := $(patsubst tools/%.c,$(BUILD)/tools/%.o,$(wildcard tools/*.c tools/*/*.c))
$(BUILD)/tools/%.o: tools/%.c
	@mkdir -p $(@D); echo "  CC    $<"
	$(CC) $(C_FLAGS) -DGPS_VERSION='"$(VERSION)"' -DGPS_LIBDIR='"$(LIBDIR)"' -c $< -o $@

$(BUILD)/tools/timeline/timeline_page.o: tools/timeline/page.html
$(BUILD)/tools/report/suppress.o: config/suppressions.conf

# libdw reads debug information, libiberty demangles, jansson reads and writes JSON, ncurses draws. All of it statically:
# the keeper is this program, too, and starts where nothing was installed. What libdw.a needs differs.
archives = $(foreach name,$(1),$(if $(filter /%,$(shell $(CC) -print-file-name=lib$(name).a)),-l:lib$(name).a))
TOOL_LIBS ?= -l:libjansson.a -l:libiberty.a -l:libncursesw.a -l:libtinfo.a $(call archives,dw elf lzma bz2 zstd z)
$(BUILD)/gpushare: $(TOOL_OBJECTS) $(TOOL_COMPAT) $(BUILD)/libgpushare_parts.a $(OLD_LIBRARIES)
	@echo "  LINK  $@"
	$(CC) $(C_FLAGS) $(filter %.o %.a,$^) -o $@ $(TOOL_LIBS) $(OLD_LINK)

# --- installing ------------------------------------------------------------------------------------

PREFIX ?= /usr/local
LIBDIR ?= $(PREFIX)/lib
BINDIR := $(PREFIX)/bin
SHARE := $(PREFIX)/share
DOC := $(SHARE)/doc/gpushare
HEADERS := $(PREFIX)/include/gpushare
UNITS := $(PREFIX)/lib/systemd/user
BASH_COMPLETION := $(SHARE)/bash-completion/completions/gpushare
ZSH_COMPLETION := $(SHARE)/zsh/site-functions/_gpushare
FISH_COMPLETION := $(SHARE)/fish/vendor_completions.d/gpushare.fish
# Tool that runs here, where $(BUILD)/gpushare is for another machine.
RUNNING_TOOL ?= $(BUILD)/gpushare

MADE := $(BUILD)/share
$(MADE)/gpushare.bash $(MADE)/_gpushare $(MADE)/gpushare.fish &: config/packaging/completions config/packaging/verbs.py $(RUNNING_TOOL)
	config/packaging/completions $(RUNNING_TOOL) $(MADE)
$(MADE)/gpushare.conf.5: config/packaging/manual shim/config/options.def
	@mkdir -p $(@D)
	config/packaging/manual $(VERSION) >$@
$(MADE)/gpushare.1: config/packaging/tool_manual config/packaging/verbs.py tools/manual.txt $(RUNNING_TOOL)
	@mkdir -p $(@D)
	config/packaging/tool_manual $(RUNNING_TOOL) $(VERSION) >$@

# A row of `install` has the files, then where they go. A template has a path in it, which is filled in where the file lies,
# for PREFIX differs from one installation to the next.
into = install -D -m 644 -t $(DESTDIR)$(strip $(2)) $(1)
as = install -D -m 644 $(1) $(DESTDIR)$(strip $(2))
filled = $(as) && sed -i 's|@PREFIX@|$(PREFIX)|; s|@LIBDIR@|$(LIBDIR)|; s|@VERSION@|$(VERSION)|' $(DESTDIR)$(strip $(2))
install: all $(addprefix $(MADE)/,gpushare.bash _gpushare gpushare.fish gpushare.1 gpushare.conf.5)
	install -D -m 755 $(BUILD)/gpushare $(DESTDIR)$(BINDIR)/gpushare
	$(call into, $(BUILD)/libgpushare.so $(BUILD)/libgpushare-hip.so, $(LIBDIR))
	$(call into, include/gpushare/*.h, $(HEADERS))
	$(call into, $(MADE)/gpushare.1, $(SHARE)/man/man1)
	$(call into, $(MADE)/gpushare.conf.5, $(SHARE)/man/man5)
	$(call as, $(MADE)/gpushare.bash, $(BASH_COMPLETION))
	$(call as, $(MADE)/_gpushare, $(ZSH_COMPLETION))
	$(call as, $(MADE)/gpushare.fish, $(FISH_COMPLETION))
	$(call filled, config/packaging/gpushare.pc.in, $(LIBDIR)/pkgconfig/gpushare.pc)
	$(call filled, config/packaging/gpushare-keeper.service.in, $(UNITS)/gpushare-keeper.service)
	$(call into, README.md CHANGELOG.md SECURITY.md config/gpushare.conf config/suppressions.conf, $(DOC))
	$(call into, docs/*, $(DOC)/docs)
	$(call into, config/examples/* config/containers/*, $(DOC)/examples)
	$(call filled, config/packaging/gpushare-server@.service.in, $(DOC)/examples/gpushare-server@.service)
	$(call filled, config/slurm/prolog.in, $(DOC)/examples/slurm/prolog)
	$(call filled, config/slurm/task-prolog.in, $(DOC)/examples/slurm/task-prolog)
	$(call filled, config/slurm/epilog.in, $(DOC)/examples/slurm/epilog)
# Behind all that a page may lead to.
	config/packaging/pages $(DESTDIR)$(DOC)
# What others share a folder with goes file by file.
INSTALLED := $(BINDIR)/gpushare \
	$(LIBDIR)/libgpushare.so \
	$(LIBDIR)/libgpushare-hip.so \
	$(LIBDIR)/pkgconfig/gpushare.pc \
	$(SHARE)/man/man1/gpushare.1 \
	$(SHARE)/man/man5/gpushare.conf.5 \
	$(BASH_COMPLETION) \
	$(ZSH_COMPLETION) \
	$(FISH_COMPLETION) \
	$(UNITS)/gpushare-keeper.service
uninstall:
	rm -f $(addprefix $(DESTDIR),$(INSTALLED))
	rm -rf $(DESTDIR)$(DOC) $(DESTDIR)$(HEADERS)

# Debian packages of this machine's kind, and of arm64 where tests/systems/aarch64.sh has built it; in $(BUILD)/deb.
.PHONY: deb
deb: all
	config/packaging/deb $(BUILD) $(VERSION)

clean:
	rm -rf $(BUILD) $(BUILD)-address $(BUILD)-thread $(BUILD)-undefined

# --- the demonstration and the checks --------------------------------------------------------------

# Installs what is missing, builds, and runs the main job: on the GPU if there is one, else simulated.
DEMO_DRIVER := $(shell nvidia-smi -L >/dev/null 2>&1 && echo gpu || echo sim)
demo:
	.ci/deps build
	$(MAKE) --no-print-directory all $(BUILD)/demo/$(DEMO_DRIVER)/producer $(BUILD)/demo/$(DEMO_DRIVER)/consumer
	tests/demo/demo.sh $(BUILD) $(DEMO_DRIVER)

DEMO_FLAGS = $(CFLAGS) $(WARNINGS) -isystem $(CUDA_INC)
CUDART_DIR := $(firstword $(wildcard $(CUDA_HOME)/lib64 $(CUDA_HOME)/lib))
$(BUILD)/demo/sim/producer: tests/demo/producer.c $(BUILD)/sim/libcudart.so $(BUILD)/sim/libcuda.so $(BUILD)/sim/gpusimd
	@mkdir -p $(@D); echo "  CC    $@"
	$(CC) $(DEMO_FLAGS) $< -o $@ -L$(BUILD)/sim -lcudart
$(BUILD)/demo/sim/consumer: tests/demo/consumer.c $(BUILD)/sim/libcudart_static.a $(BUILD)/sim/libcuda.so $(BUILD)/sim/gpusimd
	@mkdir -p $(@D); echo "  CC    $@"
	$(CC) $(DEMO_FLAGS) $< -o $@ $(BUILD)/sim/libcudart_static.a -ldl -pthread
$(BUILD)/demo/gpu/producer: tests/demo/producer.c
	@mkdir -p $(@D); echo "  CC    $@"
	$(CC) $(DEMO_FLAGS) $< -o $@ -L$(CUDART_DIR) -lcudart
$(BUILD)/demo/gpu/consumer: tests/demo/consumer.c
	@mkdir -p $(@D); echo "  CC    $@"
	$(CC) $(DEMO_FLAGS) $< -o $@ $(CUDART_DIR)/libcudart_static.a -ldl -lrt -pthread

check:
	tests/check $(BUILD)

# docs/findings.md, from what the programs of tests/apps/misuse are really told; the outputs in the other pages,
# from running the commands in them; the list of what differs in docs/limits.md, from the test that finds it.
docs: all sim apps
	tests/documents/findings.py $(BUILD)
	tests/documents/pages.py $(BUILD)
	tests/gpu/kinds.py --write

# Every parser, FUZZ_TIME seconds each; a longer run is for a person: make fuzz-run FUZZ_TIME=600
FUZZ_TIME ?= 15
FUZZERS := config keeper python record report suppress
.PHONY: $(FUZZERS:%=fuzz-run-%)
fuzz-run: $(FUZZERS:%=fuzz-run-%)
$(FUZZERS:%=fuzz-run-%): fuzz-run-%: fuzz
	mkdir -p $(BUILD)/fuzz-$*
	$(BUILD)/tests/fuzz/fuzz_$* -max_total_time=$(FUZZ_TIME) -print_final_stats=1 \
		$(BUILD)/fuzz-$* tests/fuzz/corpus config

include tests/gpu/gpu.mk

include tests/bench/bench.mk

# --- the simulated driver, the tests ---------------------------------------------------------------

include tests/sim/sim.mk
include tests/tests.mk
include tests/gpu/hip.mk

-include $(SHIM_OBJECTS:.o=.d) $(HIP_OBJECTS:.o=.d) $(TOOL_OBJECTS:.o=.d)
