# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
# To be included by the Makefile or Kbuild of a module that uses kDAPL:
#
#	obj-m := my_consumer.o
#	include /usr/share/kdapl/kdapl.mk
#
# It makes <dat/kdat.h> be found, in directories below as well, and tells modpost
# what the kdapl.ko exports that is installed for the kernel being built for.
# Nothing here is absolute: it works in a copy of the installed tree, too.

KDAPL_ROOT := $(abspath $(dir $(lastword $(MAKEFILE_LIST)))/../../..)
KDAPL_SYMVERS ?= $(KDAPL_ROOT)/var/lib/kdapl/$(KERNELRELEASE)/Module.symvers

subdir-ccflags-y += -I$(KDAPL_ROOT)/usr/include/kdapl
KBUILD_EXTRA_SYMBOLS += $(KDAPL_SYMVERS)

# Said once, where it would end in a list of undefined symbols.
ifneq ($(filter %/Makefile.modpost,$(MAKEFILE_LIST)),)
 ifeq ($(wildcard $(KDAPL_SYMVERS)),)
  $(error kDAPL is not installed for kernel $(KERNELRELEASE): no $(KDAPL_SYMVERS))
 endif
endif
