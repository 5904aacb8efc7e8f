# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
# kDAPL for Linux. "make help" lists the targets; Kbuild says what is built.

KDIR ?= /lib/modules/$(shell uname -r)/build

# Only "make modules" and "make docs" write into this directory. What runs on
# User Mode Linux is built in copies under the cache: see scripts/build-modules.
export SUITE KERNEL TIMEOUT

.PHONY: help
help:
	@echo 'Modules for a kernel of yours:'
	@echo '  make [KDIR=<kernel build directory>] [ARCH=...] modules'
	@echo '  make [KDIR=...] modules_install   install them below /lib/modules'
	@echo '  make [KDIR=...] clean             remove what was built here'
	@echo
	@echo 'On User Mode Linux, with RDMA in software; needs no hardware:'
	@echo '  make check     all tests on a plain and on a debug kernel'
	@echo '      SUITE=name      only this suite or module of suites (may be a glob)'
	@echo '      KERNEL=plain    only this kernel (plain or debug)'
	@echo '  make demo      see it work'
	@echo '  make check-blk the block device under fio, ext4 and dm-crypt'
	@echo '  make bench     time it against raw verbs'
	@echo '  make soak      the random and the fault tests for an hour or more'
	@echo '  make coverage  lines of drivers/kdapl that the tests execute'
	@echo
	@echo 'Sources:'
	@echo '  make lint      checkpatch, W=1, sparse, kernel-doc, shellcheck, docs'
	@echo '  make docs      manual pages and HTML, in Documentation/output'

.PHONY: modules modules_install clean
modules:
	@scripts/compat-probe "$(KDIR)" include/compat_probe.h
	$(MAKE) -C "$(KDIR)" M="$(CURDIR)" modules

modules_install:
	$(MAKE) -C "$(KDIR)" M="$(CURDIR)" modules_install

clean:
	$(MAKE) -C "$(KDIR)" M="$(CURDIR)" clean
	rm -rf include/compat_probe.h Documentation/output

.PHONY: check check-blk demo bench soak coverage lint docs
check check-blk demo bench soak coverage lint docs:
	@scripts/$@
