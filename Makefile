# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
# kDAPL for Linux. "make help" lists the targets; Kbuild says what is built.

KDIR ?= /lib/modules/$(shell uname -r)/build
DESTDIR ?=

# Only "make modules" and "make docs" write into this directory. What runs on
# User Mode Linux is built in copies under the cache: see scripts/build-modules.
export SUITE KERNEL TIMEOUT WHERE STRESS

.PHONY: help
help:
	@echo 'Modules for a kernel of yours:'
	@echo '  make [KDIR=<kernel build directory>] [ARCH=...] modules'
	@echo '  make [KDIR=...] modules_install   install them below /lib/modules'
	@echo '  make [KDIR=...] clean             remove what was built here'
	@echo '  make [DESTDIR=...] install-dev    headers and kdapl.mk for consumers'
	@echo '  make [DESTDIR=...] install-tools  kdapl-blk, which sets up the block device'
	@echo
	@echo 'On User Mode Linux, with RDMA in software; needs no hardware:'
	@echo '  make check     all tests on a plain and on a debug kernel'
	@echo '      SUITE=name      only this suite or module of suites (may be a glob)'
	@echo '      KERNEL=plain    only this kernel (plain or debug)'
	@echo '  make check-blk the block device under fio, ext4 and dm-crypt'
	@echo '  make bench     time it against raw verbs'
	@echo '  make soak      the random and the fault tests for an hour or more'
	@echo '  make bench-blk time the block device against NVMe over RDMA'
	@echo '  make bench-fair honest clients of it beside flooding ones; a plot'
	@echo '  make coverage  lines of drivers/kdapl that the tests execute'
	@echo
	@echo "On Debian's own kernels, in QEMU with two CPUs:"
	@echo '  make demo      see it work; WHERE=6.1, 6.12 (default) or uml'
	@echo '  make check-vm  demo, suites, and STRESS=300 seconds of everything at once'
	@echo '      KERNEL=6.12     only this kernel (6.1 or 6.12)'
	@echo '  make check-two-hosts   a disk across a wire that loses packets, is pulled'
	@echo '                         out, and whose ends are killed (KERNEL=6.12)'
	@echo '  make check-smp  all suites on a kernel of our own with KASAN and lockdep'
	@echo
	@echo 'Debian packages (dpkg-buildpackage makes them):'
	@echo '  make check-package   build them; install, upgrade, use, remove them in'
	@echo '                       a copy of this system, for its 6.1 and 6.12 kernels'
	@echo
	@echo 'Sources:'
	@echo '  make lint      checkpatch, W=1, sparse, kernel-doc, shellcheck, docs'
	@echo '  make docs      manual pages and HTML, in Documentation/output'

.PHONY: modules modules_install clean
modules:
	@scripts/compat-probe "$(KDIR)" include/compat_probe.h
	$(MAKE) -C "$(KDIR)" M="$(CURDIR)" modules

# With what a consumer's build needs to know about them, see kdapl.mk.
modules_install:
	$(MAKE) -C "$(KDIR)" M="$(CURDIR)" modules_install
	install -D -m 644 Module.symvers \
		"$(INSTALL_MOD_PATH)/var/lib/kdapl/$$(cat \
			"$(KDIR)/include/config/kernel.release")/Module.symvers"

clean:
	$(MAKE) -C "$(KDIR)" M="$(CURDIR)" clean
	rm -rf include/compat_probe.h Documentation/output

# What a consumer is built with; nothing of it depends on a kernel.
.PHONY: install-dev
install-dev:
	install -d "$(DESTDIR)/usr/include/kdapl/dat" "$(DESTDIR)/usr/share/kdapl"
	install -m 644 include/dat/*.h "$(DESTDIR)/usr/include/kdapl/dat"
	install -m 644 scripts/kdapl.mk "$(DESTDIR)/usr/share/kdapl"

# The administrator's tool; nothing is built for it.
.PHONY: install-tools
install-tools:
	install -D -m 755 scripts/kdapl-blk "$(DESTDIR)/usr/sbin/kdapl-blk"
	install -D -m 644 Documentation/kdapl-blk.8 \
		"$(DESTDIR)/usr/share/man/man8/kdapl-blk.8"

# What DKMS needs of this tree: the modules, not their tests.
.PHONY: dkms-files
dkms-files:
	@find dkms.conf Kbuild Makefile drivers include/dat \
		scripts/compat-probe scripts/dkms-symvers scripts/kdapl.mk \
		scripts/probes -type f ! -name '*.o' ! -name '.*' ! -name '*.ko' \
		! -name '*.mod' ! -name '*.mod.c' ! -name modules.order

.PHONY: check check-blk demo bench bench-blk bench-fair soak coverage lint docs check-package check-vm check-two-hosts check-smp
check check-blk demo bench bench-blk bench-fair soak coverage lint docs check-package check-vm check-two-hosts check-smp:
	@scripts/$@
