# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# shellcheck shell=bash
#
# Sourced by common.sh: kernels for other processors than this machine's, how their modules
# are built here and how QEMU emulates them.

: "${cache:=}"

# is_foreign KERNEL: succeeds if this kernel is for another processor; its name is
# SERIES-FLAVOUR, as Debian has it in linux-image-SERIES...-FLAVOUR
is_foreign()
{
	[[ $1 =~ ^[0-9.]+- ]]
}

# describe_foreign KERNEL: make $debian_flavour Debian's name of this kernel, $debian that of the
# architecture, $kernel_arch what the kernel calls it, $cross the prefix of its compiler,
# whose package is $compiler.
# shellcheck disable=SC2034	# for who calls this
describe_foreign()
{
	debian_flavour=${1#*-}
	case $debian_flavour in
	arm64*) debian=arm64 kernel_arch=arm64 cross=aarch64-linux-gnu- ;;
	s390x) debian=s390x kernel_arch=s390 cross=s390x-linux-gnu- ;;
	powerpc64le*) debian=ppc64el kernel_arch=powerpc cross=powerpc64le-linux-gnu- ;;
	esac
	compiler=gcc-${cross%-}
}

# emulate KERNEL: make $qemu the command, with its arguments, that emulates a machine for
# this kernel, and $console the kernel's name of its first serial line
# shellcheck disable=SC2034	# for who calls this
emulate()
{
	case $1 in
	*-arm64*)
		# Arm's own algorithm of pointer authentication is slow to emulate.
		qemu=(qemu-system-aarch64 -machine virt -cpu "max,pauth-impdef=on")
		console=ttyAMA0
		;;
	*-s390x)
		qemu=(qemu-system-s390x -machine s390-ccw-virtio -cpu max)
		console=ttysclp0
		;;
	*-powerpc64le*)
		qemu=(qemu-system-ppc64 -cpu power9
			-machine "pseries,cap-cfpc=broken,cap-sbbc=broken,cap-ibs=broken,cap-ccf-assist=off")
		console=hvc0
		;;
	*)
		qemu=(qemu-system-x86_64 -cpu "max,la57=off")
		console=ttyS0
		;;
	esac
}
