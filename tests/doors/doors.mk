# What the tests of the doors run: programs and libraries that know nothing of gpushare, each with
# another way to CUDA. Included by tests.mk.

TESTS ?= $(BUILD)/tests
DOORS := $(TESTS)/doors.d
DOORS_SRC := tests/doors/apps
DOORS_WARN := $(WARNINGS) -Wno-unused-parameter -O1 -g -pthread -Iinclude -Ishim -isystem $(CUDA_INC) -MMD -MP
DOORS_C = $(CC) -std=gnu11 -D_GNU_SOURCE= $(DOORS_WARN)
DOORS_CXX = $(CXX) -std=gnu++17 $(DOORS_WARN)
DOORS_DRIVER := -L$(BUILD)/sim -lcuda
DOORS_RUNTIME := -L$(BUILD)/sim -lcudart
DOORS_STATIC := $(BUILD)/sim/libcudart_static.a
DOORS_SIM := $(BUILD)/sim/libcuda.so $(BUILD)/sim/libcudart.so $(DOORS_STATIC) $(BUILD)/sim/gpusimd
DOORS_NEEDED := -Xlinker --no-as-needed

# $(1) the file made, $(2) its source, $(3) flags and what it is linked with, $(4) the compiler,
# $(5) what must be there first
define DOORS_ROW
DOORS_MADE += $(DOORS)/$(1)
$(DOORS)/$(1): $(DOORS_SRC)/$(2) $(5) $(DOORS_SIM)
	@mkdir -p $$(@D); echo "  CC    $$@"
	$(if $(4),$(4),$$(DOORS_C)) $(if $(filter %.so %.so.13,$(1)),-shared -fPIC) $$< -o $$@ $(3) -ldl
endef
DOORS_ADD = $(eval $(call DOORS_ROW,$(1),$(2),$(3),$(4),$(5)))

DOORS_MADE :=
$(call DOORS_ADD,peer,peer.c,$(DOORS_RUNTIME))
$(call DOORS_ADD,door,door.c,)
$(call DOORS_ADD,door-driver,door.c,-DLINKED_DRIVER $(DOORS_DRIVER))
$(call DOORS_ADD,door-runtime,door.c,-DLINKED_RUNTIME $(DOORS_RUNTIME))
$(call DOORS_ADD,door-static,door.c,-DLINKED_RUNTIME $(DOORS_STATIC))
$(call DOORS_ADD,plugin-driver.so,plugin.c,-DPLUGIN_DRIVER $(DOORS_DRIVER))
$(call DOORS_ADD,plugin-runtime.so,plugin.c,-DPLUGIN_RUNTIME $(DOORS_RUNTIME))
$(call DOORS_ADD,plugin-static.so,plugin.c,-DPLUGIN_RUNTIME $(DOORS_STATIC))
$(call DOORS_ADD,plugin-under-driver.so,plugin.c,-DPLUGIN_DRIVER)
$(call DOORS_ADD,plugin-under-runtime.so,plugin.c,-DPLUGIN_RUNTIME)
$(call DOORS_ADD,plugin-default.so,plugin.c,-DPLUGIN_DEFAULT $(DOORS_NEEDED) $(DOORS_DRIVER))
$(call DOORS_ADD,plugin-default-none.so,plugin.c,-DPLUGIN_DEFAULT)
$(call DOORS_ADD,plugin-runtime-default.so,plugin.c,-DPLUGIN_RUNTIME_DEFAULT $(DOORS_NEEDED) $(DOORS_RUNTIME))
$(call DOORS_ADD,plugin-next.so,plugin.c,-DPLUGIN_NEXT $(DOORS_NEEDED) $(DOORS_DRIVER))
$(call DOORS_ADD,procaddr,procaddr.c,)
$(call DOORS_ADD,threads,threads.c,)
$(call DOORS_ADD,interposer-next.so,interposer.c,-DINTERPOSE_NEXT)
$(call DOORS_ADD,interposer-dlsym.so,interposer.c,)
$(call DOORS_ADD,taker,taker.c,)
$(call DOORS_ADD,taker-driver,taker.c,-DLINKED_DRIVER $(DOORS_DRIVER))
$(call DOORS_ADD,taker-runtime,taker.c,-DLINKED_RUNTIME $(DOORS_RUNTIME))
$(call DOORS_ADD,taker-static,taker.c,-DLINKED_RUNTIME $(DOORS_STATIC))
$(foreach kind,all dlsym getproc driver runtime,$(call DOORS_ADD,rival-$(kind).so,rival.c,-DRIVAL='"$(kind)"' -DRIVAL_$(shell echo $(kind) | tr a-z A-Z)))
$(call DOORS_ADD,rival-bound.so,rival.c,-DRIVAL='"bound"' -DRIVAL_ALL -Xlinker -Bsymbolic)
$(call DOORS_ADD,rival-linked.so,rival.c,-DRIVAL='"linked"' -DRIVAL_LINKED $(DOORS_DRIVER))
$(call DOORS_ADD,early.so,early.c,-DEARLY_LIBRARY $(DOORS_RUNTIME))
$(call DOORS_ADD,early,early.c,$(DOORS)/early.so $(DOORS_RUNTIME) -Xlinker -rpath=$(abspath $(DOORS)),,$(DOORS)/early.so)
$(call DOORS_ADD,throwing,throwing.cpp,$(DOORS_RUNTIME),$$(DOORS_CXX))
$(call DOORS_ADD,other-runtime/libcudart.so.13,throwing.cpp,-DTHROWING_RUNTIME -Xlinker -soname=libcudart.so.13,$$(DOORS_CXX))
$(call DOORS_ADD,empty.so,empty.c,)
$(call DOORS_ADD,share,share.c,$(DOORS_RUNTIME))
$(call DOORS_ADD,quiet,quiet.c,)
$(call DOORS_ADD,codes,codes.c,$(DOORS_DRIVER) $(DOORS_RUNTIME))
$(call DOORS_ADD,harm,harm.c,$(DOORS_RUNTIME))
$(call DOORS_ADD,lookups,lookups.c,)
$(call DOORS_ADD,scopes,scopes.c,)
$(call DOORS_ADD,scopes-runtime,scopes.c,-DLINKED $(DOORS_RUNTIME))
$(call DOORS_ADD,scopes-plugin.so,scopes.c,-DLIBRARY)
$(call DOORS_ADD,scopes-plugin-runtime.so,scopes.c,-DLIBRARY $(DOORS_NEEDED) $(DOORS_RUNTIME))
# Programs whose threads begin with so much of a library's own, in KiB.
DOORS_LATE = $(call DOORS_ADD,kept-$(1).so,late.c,-DKEPT_HERE "-DKEPT=($(1) << 10)") \
	$(call DOORS_ADD,late-$(1),late.c,$(DOORS)/kept-$(1).so $(DOORS_RUNTIME) -Xlinker -rpath=$(abspath $(DOORS)),,$(DOORS)/kept-$(1).so)
$(foreach size,1 504 1024 10240,$(call DOORS_LATE,$(size)))
$(call DOORS_ADD,statics,statics.cpp,$(DOORS_RUNTIME),$$(DOORS_CXX))

# Two more runtimes, each with a state of its own and another name, and what is linked with them:
# directly, or by a library in between.
$(DOORS)/libcudart.so.11 $(DOORS)/libcudart.so.12: $(DOORS)/libcudart.so.%: $(SIM_RUNTIME)
	@mkdir -p $(@D); echo "  LINK  $@"
	echo 'libcudart.so.$* { global: cuda[A-Z]*; local: *; };' > $@.map
	$(CC) -shared -pthread $^ -o $@ -Wl,-soname,libcudart.so.$* -Wl,-Bsymbolic -Wl,--version-script=$@.map -ldl
DOORS_RPATH := -Xlinker -rpath=$(abspath $(DOORS)) -Xlinker -rpath-link=$(abspath $(BUILD)/sim)
$(call DOORS_ADD,two-11.so,two.c,$(DOORS)/libcudart.so.11 $(DOORS_RPATH),,$(DOORS)/libcudart.so.11)
$(call DOORS_ADD,two-12.so,two.c,$(DOORS)/libcudart.so.12 $(DOORS_RPATH),,$(DOORS)/libcudart.so.12)
$(call DOORS_ADD,two-13.so,two.c,$(DOORS_RUNTIME))
$(call DOORS_ADD,two-static.so,two.c,$(DOORS_STATIC))
$(call DOORS_ADD,two-by-two-12.so,two-between.c,$(DOORS_NEEDED) $(DOORS)/two-12.so $(DOORS_RPATH),,$(DOORS)/two-12.so)
$(call DOORS_ADD,two-main,two-main.c,)

# A driver in two layers. The outer one has each function of the inner one.
DOORS_LAYERS := $(DOORS)/layers
$(DOORS_LAYERS)/libcuda-inner.so: $(SIM_DRIVER) $(SIM)/driver/exports.map $(DOORS_SIM)
	@mkdir -p $(@D); echo "  LINK  $@"
	ln -sf $(abspath $(BUILD)/sim/gpusimd) $(@D)
	$(CC) -shared -pthread $(SIM_DRIVER) -o $@ -Wl,-soname,$(@F) -Wl,-z,nodelete -Wl,-Bsymbolic \
		-Wl,--version-script=$(SIM)/driver/exports.map -ldl
$(DOORS_LAYERS)/layer.inc: $(BUILD)/sim/libcuda.so
	@mkdir -p $(@D)
	nm -D --defined-only $< | sed -nE 's/.* T (cu\w+)$$/FORWARD(\1)/p' > $@
DOORS_MADE += $(DOORS_LAYERS)/libcuda.so.1
$(DOORS_LAYERS)/libcuda.so.1: $(DOORS_SRC)/layer.c $(DOORS_LAYERS)/layer.inc $(DOORS_LAYERS)/libcuda-inner.so
	@echo "  CC    $@"
	$(DOORS_C) -shared -fPIC -I$(@D) $< -o $@ -Xlinker -soname=libcuda.so.1 -Xlinker -rpath='$$ORIGIN' -Xlinker -z -Xlinker nodelete -ldl

# Pairs of one layout, that are loaded in turn at one place; and one place for two functions.
$(call DOORS_ADD,replaced,replaced.c,)
$(call DOORS_ADD,swapped-close.so,swapped.c,-DCALLED=cudaIpcCloseMemHandle $(DOORS_RUNTIME))
$(call DOORS_ADD,swapped-free.so,swapped.c,-DCALLED=cudaFree $(DOORS_RUNTIME))
$(call DOORS_ADD,swapped-again.so,swapped.c,-DCALLED=cudaIpcCloseMemHandle -Xlinker --build-id=0x1122334455667788 $(DOORS_RUNTIME))
$(call DOORS_ADD,bare-11.so,two.c,-Xlinker --build-id=none $(DOORS)/libcudart.so.11 $(DOORS_RPATH),,$(DOORS)/libcudart.so.11)
$(call DOORS_ADD,bare-12.so,two.c,-Xlinker --build-id=none $(DOORS)/libcudart.so.12 $(DOORS_RPATH),,$(DOORS)/libcudart.so.12)
$(call DOORS_ADD,moved,moved.c,)
$(call DOORS_ADD,weak,weak.c,)
$(call DOORS_ADD,onesite,onesite.c,$(DOORS_RUNTIME))
$(call DOORS_ADD,moved-first.so,moved.c,-DMOVED_FIRST)
$(call DOORS_ADD,moved-second.so,moved.c,-DMOVED_SECOND)

# Eight layers of 25 libraries, each of which needs all of the next layer, and the last a runtime.
DOORS_LD = $(shell $(CC) -print-prog-name=ld)
DOORS_MADE += $(DOORS)/deep.so
$(DOORS)/deep.so: $(DOORS_SRC)/deep.c $(DOORS)/libcudart.so.12 $(DOORS_SIM)
	@mkdir -p $(DOORS)/deep; echo "  CC    $@"
	echo | $(CC) -x c -fPIC -c - -o $(DOORS)/deep/empty.o
	next=$(abspath $(DOORS)/libcudart.so.12); for layer in 8 7 6 5 4 3 2 1; do \
		for i in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24 25; do \
			$(DOORS_LD) -shared --no-as-needed -soname libdeep-$$layer-$$i.so -o $(DOORS)/deep/libdeep-$$layer-$$i.so \
				$(DOORS)/deep/empty.o $$next --allow-shlib-undefined \
				--rpath $(abspath $(DOORS)/deep):$(abspath $(DOORS)) || exit 1; done; \
		next=$$(echo $(abspath $(DOORS))/deep/libdeep-$$layer-*.so); done; \
	$(DOORS_C) -shared -fPIC $< $(DOORS_NEEDED) $$next -o $@ -Xlinker -rpath=$(abspath $(DOORS)/deep) \
		-Xlinker --allow-shlib-undefined

# The same program with each sanitizer, its runtime in the program or beside it. What a machine lacks is not made,
# and its test skips.
define DOORS_SANITIZER
DOORS_MADE += $(DOORS)/door-$(1)
$(DOORS)/door-$(1): $(DOORS_SRC)/door.c $(DOORS_SIM)
	@mkdir -p $$(@D); echo "  CC    $$@"
	echo 'int main(void) { return 0; }' | $(2) -x c - -o $$@.try 2>/dev/null || exit 0; rm $$@.try; \
	$(2) -std=gnu11 -D_GNU_SOURCE= $$(DOORS_WARN) -DLINKED_RUNTIME $$< -o $$@ $(DOORS_RUNTIME) -ldl
endef
$(eval $(call DOORS_SANITIZER,gcc-asan,gcc -fsanitize=address -static-libasan))
$(eval $(call DOORS_SANITIZER,gcc-asan-shared,gcc -fsanitize=address))
$(eval $(call DOORS_SANITIZER,gcc-ubsan,gcc -fsanitize=undefined -static-libubsan))
$(eval $(call DOORS_SANITIZER,gcc-tsan,gcc -fsanitize=thread -static-libtsan))
$(eval $(call DOORS_SANITIZER,clang-asan,clang -fsanitize=address))
$(eval $(call DOORS_SANITIZER,clang-asan-shared,clang -fsanitize=address -shared-libasan -Xlinker -rpath=$$$$(dirname $$$$(clang -print-file-name=libclang_rt.asan-$$$$(uname -m).so))))
$(eval $(call DOORS_SANITIZER,clang-ubsan,clang -fsanitize=undefined))
$(eval $(call DOORS_SANITIZER,clang-tsan,clang -fsanitize=thread))

.PHONY: doors-apps
doors-apps: $(DOORS_MADE)
$(TESTS)/doors: | $(DOORS_MADE)
-include $(wildcard $(DOORS)/*.d)
