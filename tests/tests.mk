# The tests; included by the top Makefile.
#
# A group is a directory of *_test.cpp and becomes one binary, build/tests/<group>. make test runs
# them all (tests/run); make build/tests/unit builds one. An app is one .c of apps/.

TESTS := $(BUILD)/tests
# The one that takes longest begins.
GROUPS := scenario unit tool doors
# The scenarios with AMD's runtime: those of tests/scenario/hip.filter.
HIP_GROUPS := $(if $(SIM_HIP),hip6 hip7)
# make GROUPS="unit tool" test runs these alone.
CHOSEN := $(GROUPS) $(if $(filter command,$(origin GROUPS)),,$(HIP_GROUPS))

GTEST := -l:libgtest.a
GTEST_MAIN := -l:libgtest_main.a

.PHONY: tests test apps fuzz
tests: $(foreach group,$(GROUPS),$(if $(wildcard tests/$(group)/*_test.cpp),$(TESTS)/$(group))) $(filter $(HIP_GROUPS:%=$(TESTS)/%),$(CHOSEN:%=$(TESTS)/%)) apps

# A sanitizer makes everything slow.
test: all sim tests
	$(if $(SANITIZE),TEST_PATIENCE=$${TEST_PATIENCE:-4}) tests/run $(TESTS) $(CHOSEN)

# tests/slow.txt, from all tests; on a quiet machine.
.PHONY: slow-tests
slow-tests: all sim tests
	TEST_ALL=1 TEST_RECORD=tests/slow.txt tests/run $(TESTS) $(CHOSEN)

# --- groups ----------------------------------------------------------------------------------------

# Compilers need most of the time from a fresh clone: the tests themselves are not optimised, and the system's headers
# are read once. The modules under test are the library's own objects.
TEST_CFLAGS ?= $(if $(SANITIZE),-O1 -g1,-O0 -g1)
# gcc 12 takes parts of std::regex for uninitialised where they are instrumented.
TEST_FLAGS = -std=gnu++17 $(TEST_CFLAGS) $(COMMON) $(if $(SANITIZE),-Wno-maybe-uninitialized) -Itests -Itests/common -Itests/tool
SYSTEM_HEADERS := $(TESTS)/obj/system_headers.hpp
# ccache keeps what is compiled with a precompiled header only when it is told that it may.
export CCACHE_SLOPPINESS := pch_defines,time_macros

$(SYSTEM_HEADERS): tests/common/system_headers.hpp
	@mkdir -p $(@D)
	cp $< $@
$(SYSTEM_HEADERS).gch: $(SYSTEM_HEADERS)
	@echo "  PCH   tests/common/system_headers.hpp"
	$(CXX) $(TEST_FLAGS) -x c++-header $< -o $@

test_objects = $(patsubst tests/%.cpp,$(TESTS)/obj/%.o,$(wildcard tests/$(1)/*.cpp))

$(TESTS)/obj/%.o: tests/%.cpp $(SYSTEM_HEADERS).gch
	@mkdir -p $(@D); echo "  CXX   $<"
	$(CXX) $(TEST_FLAGS) -Winvalid-pch -include $(SYSTEM_HEADERS) -c $< -o $@

# What of a header is C and no C++.
$(TESTS)/obj/%.o: tests/%.c
	@mkdir -p $(@D); echo "  CC    $<"
	$(CC) $(C_FLAGS) -c $< -o $@

# The modules themselves, without a library in between.
JSON := $(TESTS)/obj/common/json.o
$(TESTS)/unit: $(call test_objects,unit) $(JSON) $(TESTS)/obj/unit/c_gate.o $(TESTS)/obj/unit/c_written.o $(BUILD)/shim/hip/hip_handle.o $(patsubst %,$(BUILD)/tools/%.o,learn/profiles \
	cli/string_map cli/tool cli/table cli/term cli/printable cli/wrap directory/cgroups)
$(TESTS)/doors: $(call test_objects,doors)
$(TESTS)/unit: LDLIBS += -l:libjansson.a
ifeq ($(SANITIZE),)
LINKED := $(GROUPS)
$(TESTS)/tool: $(call test_objects,tool) $(JSON) $(patsubst %,$(BUILD)/tools/%.o,cli/tool cli/wrap logs/log_line)
$(TESTS)/scenario: $(call test_objects,scenario) $(TESTS)/obj/tool/harness.o $(JSON)
$(TESTS)/scenario $(TESTS)/tool: | apps
# Tests that fail, for tests/run.
$(TESTS)/tool: | $(TESTS)/reruns
$(TESTS)/reruns: $(TESTS)/obj/apps/reruns.o
	$(CXX) $(TEST_FLAGS) $< -o $@ -l:libgtest_main.a $(GTEST)
$(TESTS)/tool: GTEST_MAIN :=
$(TESTS)/tool $(TESTS)/scenario: LDLIBS += -lutil -l:libjansson.a
else
# What drives processes is that of the plain build: the processes have the sanitizer.
DRIVERS := tool scenario
LINKED := $(filter-out $(DRIVERS),$(GROUPS))
.PHONY: drivers
drivers:
	$(MAKE) --no-print-directory SANITIZE= BUILD=$(PLAIN) $(DRIVERS:%=$(PLAIN)/tests/%)
$(DRIVERS:%=$(TESTS)/%): $(TESTS)/%: drivers | apps
	@mkdir -p $(@D)
	cp -p $(PLAIN)/tests/$* $@
endif

$(LINKED:%=$(TESTS)/%): $(BUILD)/libgpushare_parts.a
	@mkdir -p $(@D); echo "  LINK  $@"
	$(CXX) $(TEST_FLAGS) $(filter %.o,$^) $(BUILD)/libgpushare_parts.a -o $@ \
		$(GTEST_MAIN) $(GTEST) $(LDLIBS)

$(HIP_GROUPS:%=$(TESTS)/%): $(TESTS)/scenario
	ln -sf $(<F) $@

include tests/doors/doors.mk

# The library as with a linker that has no _dl_find_object; beside it, by links, what the tests look for.
LISTED := $(BUILD)/listed
.PHONY: listed
listed: $(LISTED)/libgpushare.so
$(LISTED)/libgpushare.so: $(SHIM_OBJECTS) $(LIBRARY_COMPAT) $(LISTED)/find_object.o $(LISTED)/no_symbol.o $(BUILD)/exports.map
	@mkdir -p $(@D); echo "  LINK  $@"
	ln -sfn ../sim ../tests ../gpushare $(@D)
	$(LINK_LIBRARY)
$(LISTED)/libgpushare.so: LIBRARY_OBJECTS = $(filter-out %/shim/stack/find_object.o,$(filter %.o,$^))
$(LISTED)/find_object.o: shim/stack/find_object.c
	@mkdir -p $(@D); echo "  CC    $@"
	$(CC) $(C_FLAGS) $(SHIM_FLAGS) -Dgps_process_symbol=gps_no_symbol -c $< -o $@
$(LISTED)/no_symbol.o: tests/built/no_symbol.c
	@mkdir -p $(@D); echo "  CC    $@"
	$(CC) $(C_FLAGS) $(SHIM_FLAGS) -c $< -o $@

# --- programs that know nothing of gpushare --------------------------------------------------------

# What they do not use of a signature is that of a command, a signal or a thread.
APP_FLAGS = -std=gnu11 -D_GNU_SOURCE= -O1 -g -pthread $(WARNINGS) -Wno-unused-parameter $(SANITIZE_FLAGS) -isystem $(CUDA_INC) -MMD -MP
SIM_LIBS := $(BUILD)/sim
CUDART_STATIC := $(firstword $(wildcard $(CUDA_HOME)/lib64/libcudart_static.a $(CUDA_HOME)/lib/libcudart_static.a))

# It looks at registers and stacks.
FAULT_INJECT := $(if $(findstring x86_64,$(shell $(CC) -dumpmachine)),$(TESTS)/fault-inject)
# As people build HIP programs, for the host alone; where Debian's clang is.
HIP_CLANG := $(if $(SANITIZE),,$(if $(FAULT_INJECT),$(shell command -v clang++)))
apps: $(TESTS)/apps/puppet $(TESTS)/apps/puppet_static $(TESTS)/apps/puppet_driver \
	$(HIP_GROUPS:%=$(TESTS)/apps/puppet_%) $(HIP_GROUPS:%=$(TESTS)/apps/misuse_%) \
	$(if $(HIP_CLANG),$(HIP_GROUPS:%=$(TESTS)/apps/hip_kernels_%)) \
	$(HIP_GROUPS:%=$(TESTS)/apps/hip_doors_%) $(TESTS)/apps/hip_doors $(HIP_GROUPS:%=$(TESTS)/soak-worker_%) \
	$(TESTS)/apps/kernels.ptx $(TESTS)/apps/misuse $(TESTS)/apps/misuse_static $(TESTS)/apps/refused $(TESTS)/apps/newest $(TESTS)/apps/five $(TESTS)/apps/camerad \
	$(TESTS)/apps/ranks $(TESTS)/apps/film $(TESTS)/apps/churn $(TESTS)/apps/twice $(if $(CUDART_STATIC),$(TESTS)/apps/twice_nvidia) $(TESTS)/apps/where \
	$(TESTS)/apps/libbetween.so $(TESTS)/apps/liblater.so $(TESTS)/apps/libdeepbind.so $(TESTS)/apps/embed $(TESTS)/nvml/libnvidia-ml.so.1 $(TESTS)/soak-worker $(TESTS)/soak-right $(TESTS)/soak-hostile $(TESTS)/soak-frames \
	$(TESTS)/differ-program $(TESTS)/keeper-abuse $(FAULT_INJECT) $(BUILD)/gpu-sim/kinds

# One program, three ways to CUDA. The shared ones run on a real driver as they are.
PUPPET := $(wildcard tests/apps/puppet/*.c)
PUPPET_PARTS := $(PUPPET) tests/apps/puppet/puppet.h tests/apps/vendor.h
$(TESTS)/apps/puppet: $(PUPPET_PARTS) $(SIM_LIBS)/libcudart.so
	@mkdir -p $(@D); echo "  CC    $@"
	$(CC) $(APP_FLAGS) $(PUPPET) -o $@ -L$(SIM_LIBS) -lcudart -ldl
# The same, for each generation of AMD's runtime.
$(TESTS)/apps/puppet_hip6 $(TESTS)/apps/puppet_hip7: $(TESTS)/apps/puppet_hip%: $(PUPPET_PARTS) $(SIM_HIP)
	@mkdir -p $(@D); echo "  CC    $@"
	$(CC) $(APP_FLAGS) -DVENDOR_HIP -idirafter $(HIP_INC) $(PUPPET) -o $@ -L$(SIM_LIBS)/hip$* -lamdhip64 -ldl
$(TESTS)/apps/puppet_static: $(PUPPET_PARTS) $(SIM_LIBS)/libcudart_static.a
	@mkdir -p $(@D); echo "  CC    $@"
	$(CC) $(APP_FLAGS) $(PUPPET) -o $@ $(SIM_LIBS)/libcudart_static.a -ldl
$(TESTS)/apps/puppet_driver: $(PUPPET_PARTS) $(SIM_LIBS)/libcuda.so
	@mkdir -p $(@D); echo "  CC    $@"
	$(CC) $(APP_FLAGS) -DPUPPET_DRIVER $(PUPPET) -o $@ -L$(SIM_LIBS) -lcuda -ldl

$(TESTS)/apps/film: tests/apps/film.c $(SIM_LIBS)/libcuda.so
	@mkdir -p $(@D); echo "  CC    $@"
	$(CC) $(APP_FLAGS) $< -o $@ -L$(SIM_LIBS) -lcuda

$(TESTS)/apps/libdeepbind.so: tests/apps/deepbind.c $(SIM_LIBS)/libcuda.so
	@mkdir -p $(@D); echo "  CC    $@"
	$(CC) $(APP_FLAGS) -shared -fPIC $< -o $@ -L$(SIM_LIBS) -lcuda -Wl,-z,lazy

$(TESTS)/apps/hip_doors: tests/apps/hip_doors.c
	@mkdir -p $(@D); echo "  CC    $@"
	$(CC) $(APP_FLAGS) $< -o $@ -ldl
$(TESTS)/apps/hip_doors_hip6 $(TESTS)/apps/hip_doors_hip7: $(TESTS)/apps/hip_doors_hip%: tests/apps/hip_doors.c $(SIM_HIP)
	@mkdir -p $(@D); echo "  CC    $@"
	$(CC) $(APP_FLAGS) -DLINKED -idirafter $(HIP_INC) $< -o $@ -L$(SIM_LIBS)/hip$* -lamdhip64 -ldl

$(TESTS)/apps/hip_kernels_hip6 $(TESTS)/apps/hip_kernels_hip7: $(TESTS)/apps/hip_kernels_hip%: tests/apps/hip_kernels.cpp $(SIM_HIP)
	@mkdir -p $(@D); echo "  CLANG $@"
	$(HIP_CLANG) -x hip --cuda-host-only -nogpulib -nogpuinc -D__HIP_PLATFORM_AMD__ -std=gnu++17 -O1 -g $(WARNINGS) \
		$(if $(filter-out /usr/include,$(HIP_INC)),-isystem $(HIP_INC)) $< -o $@ -L$(SIM_LIBS)/hip$* -lamdhip64

# With AMD's own library, which Debian has.
HIP_REAL := $(if $(SANITIZE),,$(if $(FAULT_INJECT),$(wildcard /usr/lib/x86_64-linux-gnu/libamdhip64.so)))
apps: $(HIP_REAL:%=$(TESTS)/apps/hip_doors_real)
$(TESTS)/apps/hip_doors_real: tests/apps/hip_doors.c
	@mkdir -p $(@D); echo "  CC    $@"
	$(CC) $(APP_FLAGS) -DLINKED -idirafter $(HIP_INC) $< -o $@ $(HIP_REAL) -ldl

# What the driver says of processes is what a test says.
$(TESTS)/nvml/libnvidia-ml.so.1: tests/apps/nvml.c
	@mkdir -p $(@D); echo "  CC    $@"
	$(CC) $(APP_FLAGS) -shared -fPIC $< -o $@

SOAK_WORKER := $(patsubst %,tests/soak/%.c,worker memory opens misuse trouble journal)
$(TESTS)/soak-worker: $(SOAK_WORKER) tests/soak/worker.h $(SIM_LIBS)/libcudart.so
	@mkdir -p $(@D); echo "  CC    $@"
	$(CC) $(APP_FLAGS) $(SOAK_WORKER) -o $@ -L$(SIM_LIBS) -lcudart
$(TESTS)/soak-worker_hip6 $(TESTS)/soak-worker_hip7: $(TESTS)/soak-worker_hip%: $(SOAK_WORKER) tests/soak/worker.h tests/apps/vendor.h $(SIM_HIP)
	@mkdir -p $(@D); echo "  CC    $@"
	$(CC) $(APP_FLAGS) -DVENDOR_HIP -idirafter $(HIP_INC) $(SOAK_WORKER) -o $@ -L$(SIM_LIBS)/hip$* -lamdhip64

$(TESTS)/soak-right: tests/soak/right.c tests/differ/random.c tests/differ/random.h $(SIM_LIBS)/libcuda.so
	@mkdir -p $(@D); echo "  CC    $@"
	$(CC) $(APP_FLAGS) tests/soak/right.c tests/differ/random.c -o $@ -L$(SIM_LIBS) -lcuda -lpthread

$(TESTS)/soak-hostile: tests/soak/hostile.c tests/differ/random.c tests/differ/random.h $(SIM_LIBS)/libcuda.so
	@mkdir -p $(@D); echo "  CC    $@"
	$(CC) $(APP_FLAGS) tests/soak/hostile.c tests/differ/random.c -o $@ -L$(SIM_LIBS) -lcuda -lpthread

$(TESTS)/soak-frames: tests/soak/frames.c $(SIM_LIBS)/libcuda.so
	@mkdir -p $(@D); echo "  CC    $@"
	$(CC) $(APP_FLAGS) $< -o $@ -L$(SIM_LIBS) -lcuda -ldl

DIFFER := $(wildcard tests/differ/*.c)
$(TESTS)/differ-program: $(DIFFER) tests/differ/program.h tests/differ/random.h $(SIM_LIBS)/libcuda.so
	@mkdir -p $(@D); echo "  CC    $@"
	$(CC) $(APP_FLAGS) $(DIFFER) -o $@ -L$(SIM_LIBS) -lcuda

# Each system call of the library and of the keeper fails once: minutes. x86-64 only.
.PHONY: fault
fault: all sim apps
	tests/fault/fault.py $(BUILD)
$(TESTS)/fault-inject: tests/fault/inject.c
	@mkdir -p $(@D); echo "  CC    $@"
	$(CC) $(C_FLAGS) $< -o $@

# An adversary: a minute of misuse, signals, deaths and want. SOAK_MODE=bare shows that its model is right,
# SOAK_MODE="share --merge" is one of merging.
SOAK_SECONDS ?= 60
SOAK_MODE ?= share
SEED ?= 1
.PHONY: soak
soak: all sim apps
	tests/soak/soak.py $(BUILD) --seconds $(SOAK_SECONDS) --mode $(SOAK_MODE) --seed $(SEED)

DIFFER_SECONDS ?= 60
.PHONY: differ
differ: all sim apps
	tests/differ/differ.py $(BUILD) --seconds $(DIFFER_SECONDS) --seed $(SEED)

# The keeper's minute among enemies; a table.
KEEPER_ABUSE_SECONDS ?= 60
.PHONY: keeper-abuse
keeper-abuse: $(TESTS)/keeper-abuse all
	$< $(BUILD)/gpushare $(KEEPER_ABUSE_SECONDS)
$(TESTS)/keeper-abuse: tests/soak/keeper_abuse.c $(BUILD)/libgpushare_parts.a
	@mkdir -p $(@D); echo "  CC    $@"
	$(CC) $(C_FLAGS) $^ -o $@

# Knows nothing of CUDA: its debug information is what is wanted.
$(TESTS)/apps/where: tests/apps/where.cpp
	@mkdir -p $(@D); echo "  CXX   $@"
	$(CXX) -std=gnu++17 -O1 -g -fno-optimize-sibling-calls $(WARNINGS) -Wl,--build-id -MMD -MP $< -o $@ -ldl

# For a machine with a GPU: NVIDIA's own static runtime.
$(TESTS)/gpu/puppet_static: $(PUPPET_PARTS) $(CUDART_STATIC)
	@mkdir -p $(@D); echo "  CC    $@"
	$(CC) $(APP_FLAGS) $(PUPPET) -o $@ $(CUDART_STATIC) -ldl -lrt

# Programs that misuse CUDA on purpose; their calls are to be found again in stacks, so at -O0.
MISUSE := $(wildcard tests/apps/misuse/*.c)
MISUSE_FLAGS = $(APP_FLAGS) -O0
$(TESTS)/apps/misuse: $(MISUSE) tests/apps/misuse/misuse.h $(SIM_LIBS)/libcudart.so
	@mkdir -p $(@D); echo "  CC    $@"
	$(CC) $(MISUSE_FLAGS) $(MISUSE) -o $@ -L$(SIM_LIBS) -lcudart -ldl
$(TESTS)/apps/misuse_static: $(MISUSE) tests/apps/misuse/misuse.h $(SIM_LIBS)/libcudart_static.a
	@mkdir -p $(@D); echo "  CC    $@"
	$(CC) $(MISUSE_FLAGS) $(MISUSE) -o $@ $(SIM_LIBS)/libcudart_static.a -ldl
MISUSE_HIP := $(filter-out %/context.c %/copy.c %/pool.c %/token.c %/vmm.c,$(MISUSE))
$(TESTS)/apps/misuse_hip6 $(TESTS)/apps/misuse_hip7: $(TESTS)/apps/misuse_hip%: $(MISUSE_HIP) tests/apps/misuse/misuse.h tests/apps/vendor.h $(SIM_HIP)
	@mkdir -p $(@D); echo "  CC    $@"
	$(CC) $(MISUSE_FLAGS) -DVENDOR_HIP -idirafter $(HIP_INC) $(MISUSE_HIP) -o $@ -L$(SIM_LIBS)/hip$* -lamdhip64 -ldl
$(TESTS)/gpu/misuse_static: $(MISUSE) tests/apps/misuse/misuse.h $(CUDART_STATIC)
	@mkdir -p $(@D); echo "  CC    $@"
	$(CC) $(MISUSE_FLAGS) $(MISUSE) -o $@ $(CUDART_STATIC) -ldl -lrt
$(TESTS)/apps/five: tests/apps/five.c $(SIM_LIBS)/libcudart.so
	@mkdir -p $(@D); echo "  CC    $@"
	$(CC) $(MISUSE_FLAGS) $< -o $@ -L$(SIM_LIBS) -lcudart
$(TESTS)/apps/newest: tests/apps/newest.c $(SIM_LIBS)/libcuda.so
	@mkdir -p $(@D); echo "  CC    $@"
	$(CC) $(MISUSE_FLAGS) $< -o $@ -L$(SIM_LIBS) -lcuda
$(TESTS)/apps/refused: tests/apps/refused.c $(SIM_LIBS)/libcudart.so $(SIM_LIBS)/libcuda.so
	@mkdir -p $(@D); echo "  CC    $@"
	$(CC) $(MISUSE_FLAGS) $< -o $@ -L$(SIM_LIBS) -lcudart -lcuda
$(TESTS)/apps/churn: tests/apps/churn.c $(SIM_LIBS)/libcudart.so
	@mkdir -p $(@D); echo "  CC    $@"
	$(CC) $(APP_FLAGS) $< -o $@ -L$(SIM_LIBS) -lcudart
$(TESTS)/apps/twice: tests/apps/twice.c $(SIM_LIBS)/libcudart_static.a
	@mkdir -p $(@D); echo "  CC    $@"
	$(CC) $(MISUSE_FLAGS) $< -o $@ $(SIM_LIBS)/libcudart_static.a -ldl
$(TESTS)/apps/twice_nvidia: tests/apps/twice.c $(CUDART_STATIC)
	@mkdir -p $(@D); echo "  CC    $@"
	$(CC) $(MISUSE_FLAGS) $< -o $@ $(CUDART_STATIC) -ldl -lrt

# Two ranks, and a library of the name of NCCL's.
$(TESTS)/apps/nccl/libnccl.so.2: tests/apps/ranks/libnccl.c tests/apps/ranks/libnccl.h $(SIM_LIBS)/libcudart.so
	@mkdir -p $(@D); echo "  CC    $@"
	$(CC) $(MISUSE_FLAGS) -fPIC -shared -Wl,-soname,$(@F) $< -o $@ -L$(SIM_LIBS) -lcudart
$(TESTS)/apps/ranks: tests/apps/ranks/ranks.c tests/apps/ranks/libnccl.h $(TESTS)/apps/nccl/libnccl.so.2
	@mkdir -p $(@D); echo "  CC    $@"
	$(CC) $(MISUSE_FLAGS) $< -o $@ $(TESTS)/apps/nccl/libnccl.so.2 -Wl,-rpath,'$$ORIGIN/nccl' -L$(SIM_LIBS) -lcudart

# A program, and drivers that have a few functions only.
PARTIAL := $(TESTS)/apps/few_calls $(TESTS)/apps/partial/libcuda.so.1 $(TESTS)/apps/partial/more/libcuda.so.1
apps: $(PARTIAL)
$(TESTS)/apps/few_calls: tests/apps/partial/few_calls.c
	@mkdir -p $(@D); echo "  CC    $@"
	$(CC) $(MISUSE_FLAGS) $< -o $@ -ldl
$(filter %.so.1,$(PARTIAL)): tests/apps/partial/driver.c
	@mkdir -p $(@D); echo "  CC    $@"
	$(CC) $(MISUSE_FLAGS) $(if $(findstring more,$@),-DMORE) -fPIC -shared -Wl,-soname,libcuda.so.1 $< -o $@

# For Python: a library that it calls, and a program that it runs in.
$(TESTS)/apps/lib%.so: tests/apps/python/%.c $(SIM_LIBS)/libcudart.so
	@mkdir -p $(@D); echo "  CC    $@"
	$(CC) $(APP_FLAGS) -fPIC -shared $< -o $@ -L$(SIM_LIBS) -lcudart
$(TESTS)/apps/embed: tests/apps/python/embed.c
	@mkdir -p $(@D); echo "  CC    $@"
	$(CC) $(APP_FLAGS) $< -o $@ -ldl

# Programs that the pages of docs/ show, and one that sizes itself as engines do.
SHOWN := $(addprefix $(TESTS)/apps/,camera viewer server engine)
apps: $(SHOWN)
$(SHOWN): $(TESTS)/apps/%: tests/apps/%.c $(SIM_LIBS)/libcudart.so
	@mkdir -p $(@D); echo "  CC    $@"
	$(CC) $(MISUSE_FLAGS) $< -o $@ -L$(SIM_LIBS) -lcudart

# Two containers share by the device of `gpushare cdi`. Needs root, podman and crun.
.PHONY: check-containers
check-containers: all sim apps
	tests/systems/containers $(BUILD)

# --- fuzzers ---------------------------------------------------------------------------------------

FUZZ_FLAGS = -std=gnu11 -D_GNU_SOURCE= -O1 -g $(COMMON) -Wno-unknown-warning-option \
	-fsanitize=address,undefined -fno-sanitize-recover=undefined
FUZZERS := $(patsubst tests/fuzz/%.c,$(TESTS)/fuzz/%,$(wildcard tests/fuzz/fuzz_*.c))
FUZZ_OBJECTS := $(patsubst shim/%.c,$(TESTS)/fuzz/obj/%.o,shim/log/finding.c shim/log/wording.c shim/python/python_line.c shim/python/python_frame.c \
	$(foreach room,util config directory keeper,$(wildcard shim/$(room)/*.c))) \
	$(patsubst %,$(TESTS)/fuzz/obj/tools/%.o,cli/string_map logs/logs logs/log_line logs/aggregate report/suppress cli/term cli/tool cli/wrap)
fuzz: $(FUZZERS)

$(TESTS)/fuzz/obj/%.o: shim/%.c
	@mkdir -p $(@D); echo "  FUZZ  $<"
	clang $(FUZZ_FLAGS) -fsanitize=fuzzer-no-link -c $< -o $@
$(TESTS)/fuzz/obj/tools/%.o: tools/%.c
	@mkdir -p $(@D); echo "  FUZZ  $<"
	clang $(FUZZ_FLAGS) -fsanitize=fuzzer-no-link -c $< -o $@
$(TESTS)/fuzz/parts.a: $(FUZZ_OBJECTS)
	rm -f $@
	$(AR) rcs $@ $^
$(TESTS)/fuzz/%: tests/fuzz/%.c $(TESTS)/fuzz/parts.a
	@mkdir -p $(@D); echo "  FUZZ  $@"
	clang $(FUZZ_FLAGS) -fsanitize=fuzzer $(filter %.c %.a,$^) -o $@ -l:libjansson.a

-include $(wildcard $(TESTS)/obj/*.d $(TESTS)/obj/*/*.d $(TESTS)/apps/*.d $(TESTS)/fuzz/*.d $(TESTS)/fuzz/obj/*/*.d $(TESTS)/fuzz/obj/tools/*/*.d)

# An example that runs.
$(TESTS)/apps/camerad: config/examples/camerad.c $(SIM_LIBS)/libcudart.so
	@mkdir -p $(@D); echo "  CC    $@"
	$(CC) $(APP_FLAGS) $< -o $@ -L$(SIM_LIBS) -lcudart
