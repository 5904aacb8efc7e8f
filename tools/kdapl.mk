# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
# To be included by the Makefile or Kbuild of a module that uses kDAPL:
#
#	obj-m := my_consumer.o
#	include /usr/share/kdapl/kdapl.mk
#
# The compiler then finds <dat/kdat.h>, in directories below as well, and modpost knows
# the exports of the kdapl.ko that is installed for the kernel being built for.
# No path here is absolute, so this also works in a copy of the installed tree.

KDAPL_ROOT := $(abspath $(dir $(lastword $(MAKEFILE_LIST)))/../../..)
# The release that uname shows; KERNELRELEASE of Debian's 6.1 headers differs.
KDAPL_RELEASE := $(shell sed -n 's/^\#define UTS_RELEASE "\(.*\)"/\1/p' \
	$(or $(objtree),.)/include/generated/utsrelease.h 2>/dev/null)
KDAPL_SYMVERS ?= $(KDAPL_ROOT)/var/lib/kdapl/$(KDAPL_RELEASE)/Module.symvers

subdir-ccflags-y += -I$(KDAPL_ROOT)/usr/include/kdapl
KBUILD_EXTRA_SYMBOLS += $(KDAPL_SYMVERS)

# Without this check modpost would print a long list of undefined symbols.
ifneq ($(filter %/Makefile.modpost,$(MAKEFILE_LIST)),)
 ifeq ($(wildcard $(KDAPL_SYMVERS)),)
  $(error kDAPL is not installed for kernel $(KDAPL_RELEASE): no $(KDAPL_SYMVERS))
 endif
endif
