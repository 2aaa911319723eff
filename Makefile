# tune -- GNU make, no configure step.  Everything built goes under build/; the programs lie in build/bin/.
#
#   make                      build
#   make check [MODEL=F]      all tests that need no GPU; with MODEL, check-real too
#   make check-asan           the same under AddressSanitizer and UBSan
#   make check-long           the long form of the crash test, and the demo
#   make check-real MODEL=F   against goldens of SmolLM2-135M-Instruct (F: its .gguf)
#   make fuzz [SECONDS=600]   fuzz drivers of every outside format (clang)
#   make bench [MODEL=F] [PEER=PYTHON]   timings beside the machine's own peak, and PyTorch's
#   make lint                 headers alone, shellcheck, mandoc
#   make install PREFIX=/usr/local DESTDIR=
#   make uninstall | clean | help
#
# Put local settings in config.mk (never committed).
-include config.mk
.DEFAULT_GOAL := all
.DELETE_ON_ERROR:
.SUFFIXES:

VERSION := 0.1.0
PKGS    := yaml-0.1 libzstd libxxhash libmd libedit
PREFIX  ?= /usr/local
bindir  ?= $(PREFIX)/bin
mandir  ?= $(PREFIX)/share/man
datadir ?= $(PREFIX)/share/tune
compdir ?= $(PREFIX)/share/bash-completion/completions
INSTALL ?= install

CFLAGS ?= -O2 -g
WARN   := -Wall -Wextra -Wshadow -Wvla -Wstrict-prototypes -Wmissing-prototypes -Wwrite-strings -Wno-missing-field-initializers
WERROR ?= -Werror
J ?= 2
# V=1 shows the commands.
Q   := $(if $(filter 1,$(V)),,@)
say = $(if $(filter 1,$(V)),,@printf '  %-3s %s\n' $(1) $(2))

# One build folder per configuration: objects built with other flags never mix.
comma := ,
B := build$(if $(SAN),/san-$(subst $(comma),-,$(SAN)))

# Features are probed once; make rereads itself after writing the file.
ifeq (,$(filter clean help,$(MAKECMDGOALS)))
include $(B)/features.mk
endif
# msgpack-c's C library is 'msgpack' on older systems, 'msgpack-c' on newer ones.
$(B)/features.mk: Makefile $(wildcard config.mk)
	@mkdir -p $(@D)
	@{ m=msgpack; pkg-config --exists msgpack || m=msgpack-c; \
	  pkg-config --print-errors --exists $(PKGS) $$m || { echo "make: libraries are missing; 'sh setup.sh build' installs them" >&2; exit 1; }; \
	  echo "PKG_CFLAGS := $$(pkg-config --cflags $(PKGS) $$m)"; \
	  echo "PKG_LIBS := $$(pkg-config --libs $(PKGS) $$m)"; } >$@.tmp && mv $@.tmp $@

sanflags := $(if $(SAN),-fsanitize=$(SAN) -fno-sanitize-recover=all -fno-omit-frame-pointer)
ALL_CPPFLAGS = -I. -I$(B) -Itools/tune-train -D_GNU_SOURCE -DTUNE_VERSION='"$(VERSION)"' $(PKG_CFLAGS) $(CPPFLAGS)
# Contraction is off so that a sum is the same on every compiler; kernels ask for FMA by name.
ALL_CFLAGS   = -std=c11 -pthread -ffp-contract=off $(WARN) $(WERROR) $(CFLAGS) $(sanflags)
ALL_LDFLAGS  = -pthread $(LDFLAGS) $(sanflags)

TOOLS := $(notdir $(patsubst %/,%,$(dir $(wildcard tools/*/main.c))))
CORE_TOOLS := tune-train tune-eval
UNITS := $(notdir $(basename $(wildcard tests/unit/test_*.c)))
BATS  := $(wildcard tests/*.bats)
FUZZ  := $(notdir $(basename $(wildcard tests/fuzz/fuzz_*.c)))

all: $(TOOLS:%=$(B)/bin/%)

# ---- the schema: every *.rows file of the tree, and the names of losses and optimizers ----
ROWS := $(wildcard libcommon/schema/*.rows tools/tune-train/loss/*.rows tools/tune-train/core/optim/*.rows)
names = $(subst $() ,|,$(sort $(notdir $(basename $(wildcard $(1))))))
$(B)/gen/rows.inc: $(ROWS) $(B)/flags
	@mkdir -p $(@D)
	@printf '#include "%s"\n' $(ROWS) >$@
$(B)/gen/names.h: $(wildcard tools/tune-train/loss/*.c tools/tune-train/core/optim/*.c) Makefile
	@mkdir -p $(@D)
	@{ echo '#define LOSS_NAMES "$(call names,tools/tune-train/loss/*.c)"'; \
	  echo '#define OPTIM_NAMES "$(call names,tools/tune-train/core/optim/*.c)"'; \
	  echo '#define LOSSES(X) $(patsubst %,X(%),$(sort $(notdir $(basename $(wildcard tools/tune-train/loss/*.c)))))'; } >$@
$(B)/obj/libcommon/schema.c.o: $(B)/gen/rows.inc $(B)/gen/names.h

# ---- objects, libraries, programs ----
# $(call objs,SOURCES)
objs = $(patsubst %,$(B)/obj/%.o,$(1))
COMMON := $(wildcard libcommon/*.c libcommon/*/*.c)
CORE   := $(wildcard tools/tune-train/core/*.c tools/tune-train/core/*/*.c)
$(B)/libcommon.a: $(call objs,$(COMMON))
$(B)/libtunecore.a: $(call objs,$(CORE))
$(B)/%.a:
	@rm -f $@
	$(call say,AR,$@)
	$(Q)$(AR) rcs $@ $^

$(B)/obj/tools/tune-train/core/cpu/%.c.o: OPT := -O3
ifneq (,$(findstring x86_64,$(shell $(CC) -dumpmachine)))
$(B)/obj/tools/tune-train/core/cpu/path_avx2.c.o: OPT := -O3 -mavx2 -mfma
endif
# Loops over weights of a whole model, written to be vectorised.
$(B)/obj/libcommon/formats/dtype.c.o $(B)/obj/libcommon/formats/quants.c.o: OPT := -O3
# The one file that knows the installation's place, so that another PREFIX compiles no more than it.
$(B)/obj/tools/tune/place.c.o: OPT = -DTUNE_DATADIR='"$(datadir)"'
$(B)/obj/tools/tune/place.c.o: $(B)/datadir
$(B)/datadir: FORCE
	@mkdir -p $(@D)
	@printf '%s\n' '$(datadir)' | cmp -s - $@ || printf '%s\n' '$(datadir)' >$@
$(B)/obj/%.c.o: %.c $(B)/flags
	@mkdir -p $(@D)
	$(call say,CC,$@)
	$(Q)$(CC) $(ALL_CPPFLAGS) $(ALL_CFLAGS) $(OPT) -MMD -MP -c $< -o $@

define link_rule
$(B)/bin/$(1): $(call objs,$(wildcard tools/$(1)/*.c tools/$(1)/loss/*.c)) $(if $(filter $(1),$(CORE_TOOLS)),$(B)/libtunecore.a) $(B)/libcommon.a
	@mkdir -p $$(@D)
	$$(call say,LD,$$@)
	$$(Q)$$(CC) $$(ALL_LDFLAGS) $$^ $$(PKG_LIBS) -lm -o $$@
endef
$(foreach t,$(TOOLS),$(eval $(call link_rule,$(t))))
$(B)/unit/%: $(B)/obj/tests/unit/%.c.o $(B)/libtunecore.a $(B)/libcommon.a
	@mkdir -p $(@D)
	$(call say,LD,$@)
	$(Q)$(CC) $(ALL_LDFLAGS) $^ $(PKG_LIBS) -lm -o $@
$(B)/real/%: $(B)/obj/tests/real/%.c.o $(B)/libtunecore.a $(B)/libcommon.a
	@mkdir -p $(@D)
	$(call say,LD,$@)
	$(Q)$(CC) $(ALL_LDFLAGS) $^ $(PKG_LIBS) -lm -o $@
$(B)/bench/%: $(B)/obj/tests/bench/%.c.o $(B)/libtunecore.a $(B)/libcommon.a
	@mkdir -p $(@D)
	$(call say,LD,$@)
	$(Q)$(CC) $(ALL_LDFLAGS) $^ $(PKG_LIBS) -lm -o $@

# Recompile when the flags change, not only when the sources do.
flags_line = $(subst ','\'',$(CC) $(ALL_CPPFLAGS) $(ALL_CFLAGS))
$(B)/flags: FORCE
	@mkdir -p $(@D)
	@printf '%s\n' '$(flags_line)' | cmp -s - $@ || printf '%s\n' '$(flags_line)' >$@

# ---- tests ----
# Each part says what it ran; the last line adds them up: 'N passed, N failed'.
check: all $(UNITS:%=$(B)/unit/%) $(if $(MODEL),$(B)/real/logits)
	@B=$(B) J=$(J) MODEL='$(MODEL)' sh tests/run.sh $(UNITS:%=$(B)/unit/%) $(BATS) $(if $(MODEL),$(wildcard tests/real/*.bats))
check-unit: $(UNITS:%=$(B)/unit/%)
	@B=$(B) J=$(J) sh tests/run.sh $^
check-cli: all
	@B=$(B) J=$(J) sh tests/run.sh $(BATS)
check-asan:
	$(MAKE) SAN=address,undefined check
# The long forms: 50 kills of a run that saves at each step; the whole demo.
check-long: all
	@B=$(B) KILLS=50 J=1 sh tests/run.sh tests/train.bats $(wildcard tests/long/*.bats)
check-real: all $(B)/real/logits
	@B=$(B) MODEL='$(MODEL)' J=1 sh tests/run.sh $(wildcard tests/real/*.bats)

# ---- fuzzing: clang, libFuzzer; seeds in tests/fuzz/seeds/NAME ----
SECONDS ?= 600
FB := build/fuzz
fuzz-build: $(FUZZ:%=$(FB)/%)
fuzzcc = clang $(ALL_CPPFLAGS) -std=c11 -pthread -g -O1 -fsanitize=address,undefined -fno-sanitize-recover=undefined
$(FB)/obj/%.c.o: %.c $(B)/flags $(B)/gen/rows.inc $(B)/gen/names.h
	@mkdir -p $(@D)
	$(fuzzcc) -fsanitize=fuzzer-no-link -MMD -MP -c $< -o $@
$(FB)/libcommon.a: $(COMMON:%=$(FB)/obj/%.o)
$(FB)/fuzz_%: $(FB)/obj/tests/fuzz/fuzz_%.c.o $(FB)/libcommon.a
	$(fuzzcc) -fsanitize=fuzzer $^ $(PKG_LIBS) -lm -o $@
fuzz: fuzz-build
	@for f in $(FUZZ); do s=tests/fuzz/seeds/$${f#fuzz_}; mkdir -p $(FB)/corpus/$$f $(FB)/crashes; \
	  $(FB)/$$f -max_total_time=$(SECONDS) -timeout=10 -rss_limit_mb=2048 -artifact_prefix=$(FB)/crashes/$$f- $(FB)/corpus/$$f $$s || exit 1; done
# The kept seeds once through every driver: part of make check through tests/fuzz.bats when clang is there.
fuzz-seeds: fuzz-build
	@for f in $(FUZZ); do $(FB)/$$f -runs=0 tests/fuzz/seeds/$${f#fuzz_} || exit 1; done

bench: all $(patsubst tests/bench/%.c,$(B)/bench/%,$(wildcard tests/bench/*.c))
	@B=$(B) MODEL='$(MODEL)' PEER='$(PEER)' sh tests/bench/run.sh

# ---- lint: headers alone (cpu/ops is one translation unit a path, not headers), scripts, pages ----
check-headers: $(B)/gen/rows.inc $(B)/gen/names.h
	@for h in $$(find libcommon tools tests -name '*.h' -not -path '*/cpu/ops/*'); do \
	  $(CC) $(ALL_CPPFLAGS) $(ALL_CFLAGS) -x c -include $$h -fsyntax-only /dev/null || exit 1; done
lint: check-headers
	shellcheck -x -P SCRIPTDIR setup.sh recipes/*.sh configs/models/*.sh tests/*.sh
	mandoc -Tlint -Wwarning man/*.[157]

MAN1 := $(wildcard man/*.1)
MAN5 := $(wildcard man/*.5)
install: all
	$(INSTALL) -d $(DESTDIR)$(bindir) $(DESTDIR)$(mandir)/man1 $(DESTDIR)$(mandir)/man5 $(DESTDIR)$(datadir)/recipes $(DESTDIR)$(datadir)/configs/models $(DESTDIR)$(compdir)
	$(INSTALL) -m 755 $(TOOLS:%=$(B)/bin/%) $(DESTDIR)$(bindir)
	$(INSTALL) -m 644 $(MAN1) $(DESTDIR)$(mandir)/man1
	$(INSTALL) -m 644 $(MAN5) $(DESTDIR)$(mandir)/man5
	$(INSTALL) -m 755 $(wildcard recipes/*.sh) $(DESTDIR)$(datadir)/recipes
	$(INSTALL) -m 644 $(wildcard recipes/*.bash recipes/*.txt) $(DESTDIR)$(datadir)/recipes
	$(INSTALL) -m 755 $(wildcard configs/models/*.sh) $(DESTDIR)$(datadir)/configs/models
	$(INSTALL) -m 644 $(wildcard configs/*.yaml) $(DESTDIR)$(datadir)/configs
	$(INSTALL) -m 755 configs/models/make_demo.sh $(DESTDIR)$(datadir)/configs/models
	for d in configs/models/*/; do $(INSTALL) -d $(DESTDIR)$(datadir)/$$d && $(INSTALL) -m 644 $$d* $(DESTDIR)$(datadir)/$$d || exit 1; done
	$(INSTALL) -m 644 completion/tune.bash $(DESTDIR)$(compdir)/tune
	for t in $(filter-out tune,$(TOOLS)); do ln -sf tune $(DESTDIR)$(compdir)/$$t; done
uninstall:
	rm -f $(TOOLS:%=$(DESTDIR)$(bindir)/%) $(MAN1:man/%=$(DESTDIR)$(mandir)/man1/%) $(MAN5:man/%=$(DESTDIR)$(mandir)/man5/%) $(TOOLS:%=$(DESTDIR)$(compdir)/%)
	rm -rf $(DESTDIR)$(datadir)

compile_commands.json: FORCE
	bear --output $@ -- $(MAKE) -B all
help:
	@sed -n 's/^#   //p' Makefile
clean:
	rm -rf build

FORCE:
.PHONY: all check check-long check-unit check-cli check-asan check-real check-headers fuzz fuzz-build fuzz-seeds bench lint install uninstall help clean FORCE
.SECONDARY:
-include $(shell test -d $(B)/obj && find $(B)/obj $(wildcard $(FB)/obj) -name '*.d')
