# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
# kDAPL for Linux. "make help" lists the targets; Kbuild says what is built.

KDIR ?= /lib/modules/$(shell uname -r)/build
DESTDIR ?=

# Only "make modules" and "make docs" write into this directory. What runs in test
# kernels is built in copies under the cache: see scripts/kernel/build-modules.

.PHONY: help
help:
	@echo 'Modules for a kernel of yours, 6.1 or later:'
	@echo '  make [KDIR=<kernel build directory>] [ARCH=...] modules'
	@echo '      KDIR defaults to that of the running kernel'
	@echo '      KUNIT=1   also the tests'
	@echo '  make [KDIR=...] [INSTALL_MOD_PATH=...] modules_install'
	@echo '                                    install them below /lib/modules'
	@echo '  make [KDIR=...] clean             remove what was built here'
	@echo '  make [DESTDIR=...] install-dev    headers and kdapl.mk for consumers'
	@echo '  make [DESTDIR=...] install-man    manual pages of the calls and events'
	@echo '  make [DESTDIR=...] install-tools  kdapl-blk, kdapl-stat and kdapl-test, with pages'
	@echo '  make [DESTDIR=...] install-isert  have kdapl_isert serve iSER in the place of ib_isert'
	@echo '  make [DESTDIR=...] install-svcrdma  the same of kdapl_svcrdma, NFS and rpcrdma'
	@echo '  dpkg-buildpackage -us -uc -b      Debian packages of all that, with DKMS'
	@echo '  make dist           an archive to release, for dpkg-buildpackage or rpmbuild -ta'
	@echo
	@echo 'Tests in test kernels, with RDMA in software. They need no hardware and leave'
	@echo "this machine's own kernel alone. On User Mode Linux:"
	@echo '  make check          the suites on a plain and on a debug kernel, races on several CPUs'
	@echo '      SUITE=name      only this module of suites, suite or case; may be a glob'
	@echo '      KERNEL=plain    only this kernel (plain, debug, smp or smp-debug)'
	@echo '      CPUS=8          of an smp guest'
	@echo '      SOURCE=7.3      on a plain kernel of this series'
	@echo '  make check-blk      the block device under fio, ext4 and dm-crypt'
	@echo '  make check-boot     orders of adapters, addresses and services at boot; an upgrade;'
	@echo '                      commands as the documentation prints them'
	@echo '  make check-iser     stock iSER initiators on LIO over kDAPL; KERNEL=plain or debug;'
	@echo '                      without it also in QEMU; SHORT=1'
	@echo '  make check-nfs      stock NFS clients on the NFS server over kDAPL; SHORT=1'
	@echo '  make check-races    calls race while our modules are delayed at points from a SEED'
	@echo '  make check-scale    thousands of connections and LMRs; what they cost'
	@echo '  make soak           random tests, faults, races and fuzzing for HOURS; a journal'
	@echo '  make fuzz           search for inputs from outside that reach more; TARGET=blk_tgt'
	@echo '  make fuzz-bounds    take checks of inputs out, and see the corpus notice'
	@echo '  make coverage       lines of drivers/kdapl that the suites execute'
	@echo "In QEMU with two CPUs, on Debian's 6.1 and 6.12 or on a kernel of our own:"
	@echo '  make demo           see it work; WHERE=6.1, 6.12 (default) or uml'
	@echo '  make check-vm       the demo, most suites and a stress of both CPUs'
	@echo '      KERNEL=6.12     only this kernel (6.1, 6.12, smp-kasan or smp-kcsan)'
	@echo '      SUITE="dto srq" only these modules of suites, or demo'
	@echo '  make check-two-hosts  a disk across a wire that loses packets, is pulled'
	@echo '                      out, and whose ends are killed; KERNEL=6.12'
	@echo '      PART=clients    one target and three client hosts, and what each gets'
	@echo '      PART=root       a host that boots from such a disk'
	@echo "In QEMU on other processors, on Debian's 6.12 for them:"
	@echo '  make check-arch     suites on arm64, s390x and ppc64le, with cross compilers'
	@echo '      KERNEL=6.12-arm64-16k SUITE=dto'
	@echo "Without running it, for all kernels that Debian's archive has, 7.x as well, and for"
	@echo 'other processors:'
	@echo '  make check-kernels  build everything; prints a table'
	@echo 'In a copy of this system:'
	@echo '  make check-package  build the Debian packages, install, upgrade, use and'
	@echo "                      remove them for Debian's 6.1 and 6.12 kernels; NEWEST=sid"
	@echo
	@echo 'Measurements:'
	@echo '  make bench          kDAPL beside raw verbs; COUNT=1 counts instructions'
	@echo '  make bench-blk      the block device beside NVMe over RDMA'
	@echo '  make bench-iser     iSER targets of LIO: kdapl_isert beside ib_isert'
	@echo '  make bench-nfs      the NFS server over RDMA: kdapl_svcrdma beside that of rpcrdma'
	@echo '  make bench-fair     its honest clients beside flooding ones; makes a plot'
	@echo
	@echo 'Sources:'
	@echo '  make lint           checkpatch, W=1, sparse, kernel-doc, shellcheck, docs,'
	@echo '                      calls against the layers, tracepoints and ABI described'
	@echo "  make litmus         hand-overs without a lock against the kernel's memory model,"
	@echo '                      if herd7 is there; TEST=name'
	@echo '  make check-commands wrong arguments, --help and Ctrl-C of all these commands'
	@echo '  make docs           manual pages and HTML, in Documentation/output'
	@echo
	@echo "scripts/<target> --help tells a target's variables, how long it takes and what"
	@echo 'it leaves. Test kernels and results are kept in $${XDG_CACHE_HOME:-~/.cache}/kdapl.'

.PHONY: modules modules_install clean
modules:
	@tools/for-kernel "$(KDIR)"
	+@tools/compat-probe "$(KDIR)" include/compat_probe.h
	+@tools/for-kernel "$(KDIR)" $(MAKE) -C "$(KDIR)" M="$(CURDIR)" modules

# As uname has it; include/config/kernel.release of Debian's 6.1 has another one.
release = $(shell sed -n 's/^\#define UTS_RELEASE "\(.*\)"/\1/p' \
	"$(KDIR)/include/generated/utsrelease.h" 2>/dev/null)

# Kbuild runs no depmod where the headers come without System.map, as Debian's do.
DEPMOD ?= depmod
# Module.symvers is installed too: a consumer's build needs it, see tools/kdapl.mk.
modules_install:
	@tools/for-kernel --built "$(KDIR)"
	$(MAKE) -C "$(KDIR)" M="$(CURDIR)" KERNELRELEASE="$(release)" modules_install
	install -D -m 644 Module.symvers \
		"$(INSTALL_MOD_PATH)/var/lib/kdapl/$(release)/Module.symvers"
	[ -n "$(INSTALL_MOD_PATH)" ] || $(DEPMOD) "$(release)"

clean:
	@tools/for-kernel "$(KDIR)"
	$(MAKE) -C "$(KDIR)" M="$(CURDIR)" clean
	rm -rf include/compat_probe.h build.log Documentation/output

# Headers and kdapl.mk, with which a consumer is built, do not depend on a kernel.
.PHONY: install-dev
install-dev:
	install -d "$(DESTDIR)/usr/include/kdapl/dat" "$(DESTDIR)/usr/share/kdapl"
	install -m 644 include/dat/*.h "$(DESTDIR)/usr/include/kdapl/dat"
	install -m 644 tools/kdapl.mk "$(DESTDIR)/usr/share/kdapl"

# Manual pages for consumers. The kernel's kernel-doc reads the headers: that of
# Debian's linux-kbuild packages, unless KERNEL_DOC names another one.
KERNEL_DOC ?= $(lastword $(sort $(wildcard /usr/lib/linux-kbuild-*/scripts/kernel-doc)))

.PHONY: install-man
install-man:
	@[ -f "$(KERNEL_DOC)" ] || { echo 'KERNEL_DOC=$(KERNEL_DOC): there is no such file;' \
		'set it to scripts/kernel-doc of a kernel source' >&2; exit 1; }
	dir=$$(mktemp -d) && trap 'rm -rf "$$dir"' EXIT && \
	scripts/generate/man-pages "$(KERNEL_DOC)" "$$dir" && \
	install -d "$(DESTDIR)/usr/share/man/man7" "$(DESTDIR)/usr/share/man/man9" && \
	install -m 644 "$$dir"/man/man7/* "$(DESTDIR)/usr/share/man/man7" && \
	install -m 644 "$$dir"/man/man9/* "$(DESTDIR)/usr/share/man/man9"

# Where systemd, udev and modprobe look on every system; RPM has macros for these.
UNITDIR ?= /lib/systemd/system
UDEVRULESDIR ?= /lib/udev/rules.d
MODPROBEDIR ?= /lib/modprobe.d

# The administrator's tools are scripts.
.PHONY: install-tools
install-tools:
	install -D -m 755 -t "$(DESTDIR)/usr/sbin" tools/kdapl-blk tools/kdapl-stat tools/kdapl-test
	install -D -m 644 -t "$(DESTDIR)/usr/share/kdapl-utils" tools/kdapl-utils/*.sh \
		tools/kdapl-utils/*.awk
	sed -n 's/^PACKAGE_VERSION="\(.*\)"$$/\1/p' dkms.conf \
		>"$(DESTDIR)/usr/share/kdapl-utils/version"
	install -D -m 644 -t "$(DESTDIR)/usr/share/bash-completion/completions" \
		tools/completion/*
	install -D -m 644 -t "$(DESTDIR)$(UNITDIR)" tools/systemd/*.service
	install -D -m 644 -t "$(DESTDIR)$(UDEVRULESDIR)" tools/udev/*.rules
	install -D -m 644 -t "$(DESTDIR)/usr/share/man/man8" Documentation/kdapl-*.8

# Where LIO asks for ib_isert, kdapl_isert is loaded first.
.PHONY: install-isert
install-isert:
	install -D -m 644 -t "$(DESTDIR)$(MODPROBEDIR)" tools/modprobe.d/kdapl-isert.conf
	install -D -m 644 -t "$(DESTDIR)/usr/share/man/man8" Documentation/kdapl_isert.8

# Where the NFS server or a client asks for rpcrdma, kdapl_svcrdma is loaded first.
.PHONY: install-svcrdma
install-svcrdma:
	install -D -m 644 -t "$(DESTDIR)$(MODPROBEDIR)" tools/modprobe.d/kdapl-svcrdma.conf
	install -D -m 644 -t "$(DESTDIR)/usr/share/man/man8" Documentation/kdapl_svcrdma.8

# List the files that DKMS needs: those of the modules, and of the suites that "kdapl-test
# suites" builds for an adapter of one's own.
.PHONY: dkms-files
dkms-files:
	@find dkms.conf Kbuild Makefile drivers include/dat tools \
		$(addprefix kunit/,Kbuild Kbuild.suites cm compat dto ep evd ia lib mem sim \
			srq teardown) Documentation/example/evd_wait.h -type f \
		! -name kdapl-blk ! -name kdapl-stat ! -name kdapl-test ! -path '*/kdapl-utils/*' \
		! -name '*.o' ! -name '.*' ! -name '*.ko' ! -name '*.mod' ! -name '*.mod.c' \
		! -name modules.order

commands := check check-arch check-blk check-boot check-commands check-iser check-kernels \
	check-nfs check-package check-races check-scale check-two-hosts check-vm bench bench-blk bench-fair \
	bench-iser bench-nfs coverage demo dist docs fuzz fuzz-bounds lint litmus soak
.PHONY: $(commands)
$(commands):
	@scripts/$@
