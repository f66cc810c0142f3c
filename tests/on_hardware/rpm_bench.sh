#!/bin/sh
# What a bench of the RPM kind (RHEL and its rebuilds, Oracle Linux, SLES, Fedora) answers to the questions that storqual
# asks. It reads and changes nothing: run it as root, look through what it wrote, and add it to an issue.
#
#   sh rpm_bench.sh > answers.txt
#
# Names of the machine, its machine id, UUIDs, WWNs, MAC and IP addresses, iSCSI names and password hashes are replaced.
# Usage: rpm_bench.sh [ROOT], where ROOT is the tree whose files are read (default: the running system's).
set -u
LC_ALL=C
PATH=$PATH:/usr/sbin:/sbin
export LC_ALL PATH
root=${1:-}
release=$(uname -r)
limit=60
# the longest text of one answer, in lines
longest=400

machine=$(cat "$root/etc/machine-id" 2>/dev/null)
case $machine in
[0-9]*) other=0123456789abcdef0123456789abcdef ;;
*) other=f0123456789abcdef0123456789abcde ;;
esac
case $machine in
*[!0-9a-f]* | '') machine=$other ;;
esac
# a short name such as `a` would be found within other words
host=$(uname -n | tr -cd 'A-Za-z0-9.-' | sed 's/\./\\./g')
short=${host%%\\.*}
[ ${#short} -ge 4 ] || short='no host of such a name'
[ ${#host} -ge 4 ] || host=$short

mask() {
    sed -E \
        -e "s/$machine/$other/g" \
        -e "s/(^|[^A-Za-z0-9])$host([^A-Za-z0-9]|\$)/\1bench\2/g" \
        -e "s/(^|[^A-Za-z0-9])$short([^A-Za-z0-9]|\$)/\1bench\2/g" \
        -e 's/[0-9A-Fa-f]{8}(-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}/00000000-0000-0000-0000-000000000000/g' \
        -e 's/(0x|naa\.|wwn-0x|eui\.)[0-9A-Fa-f]{16,32}/\10000000000000000/g' \
        -e 's/([0-9A-Fa-f]{2}:){5}[0-9A-Fa-f]{2}/00:00:00:00:00:00/g' \
        -e 's/([=:@/])([0-9]{1,3}\.){3}[0-9]{1,3}/\1192.0.2.1/g' \
        -e 's/([0-9A-Fa-f]{1,4}:){3,7}:?[0-9A-Fa-f]{1,4}/2001:db8::1/g' \
        -e 's/iqn\.[A-Za-z0-9.:_-]+/iqn.masked/g' \
        -e 's/grub\.pbkdf2\.[A-Za-z0-9.]+/grub.pbkdf2.masked/g' \
        -e 's/(password[= ])[^ ]+/\1masked/g'
}

# the answer to one question: what was asked, both outputs, the status
ask() {
    printf '### %s\n' "$*"
    if command -v "$1" >/dev/null 2>&1; then
        # a program that waits for somebody gets nothing, and does not hold the others up
        timeout "$limit" "$@" </dev/null 2>&1
        printf '### status %s\n' "$?"
    else
        printf '### not installed\n'
    fi
}

show() {
    for file; do
        [ -f "$root$file" ] || continue
        printf '### file %s\n' "$file"
        cat "$root$file"
        printf '\n'
    done
}

names() {
    printf '### folder %s\n' "$1"
    if [ -d "$root$1" ]; then (cd "$root$1" && ls -lA); else printf '### not there\n'; fi
}

answers() {
    show /etc/os-release /proc/cmdline /etc/kernel/cmdline /etc/kernel/entry-token /etc/kernel/install.conf
    ask uname -srm
    ask python3 --version

    # packages and kernels
    ask rpm --version
    ask rpm -q --qf '%{NAME}\t%{EPOCHNUM}\t%{VERSION}\t%{RELEASE}\t%{ARCH}\t%{INSTALLTIME}\n' \
        --whatprovides 'installonlypkg(kernel)' 'multiversion(kernel)'
    ask rpm -q --qf '%{NAME}\t%{EPOCHNUM}\t%{VERSION}\t%{RELEASE}\t%{ARCH}\t%{INSTALLTIME}\n' \
        -f "/lib/modules/$release/vmlinuz"
    for package in $(rpm -q --qf '%{NAME}-%{VERSION}-%{RELEASE}.%{ARCH}\n' -f "/lib/modules/$release/vmlinuz" 2>/dev/null); do
        ask rpm -q --scripts "$package"
        ask rpm -q --provides "$package"
        ask rpm -V "$package"
    done
    ask dnf --version
    ask zypper --version
    show /etc/dnf/dnf.conf /etc/zypp/zypp.conf /etc/sysconfig/kernel /etc/sysconfig/bootloader /etc/default/grub

    # boot loader
    for folder in /boot /boot/grub2 /boot/loader/entries /boot/efi/loader/entries /etc/kernel/install.d \
        /usr/lib/kernel/install.d; do
        names "$folder"
    done
    show /boot/grub2/grub.cfg /boot/grub2/custom.cfg
    for entry in "$root"/boot/loader/entries/*.conf "$root"/boot/efi/loader/entries/*.conf; do
        show "${entry#"$root"}"
    done
    ask grub2-editenv - list
    ask grubby --info=ALL
    ask bootctl list --no-pager --json=short
    ask findmnt -no TARGET,SOURCE,FSTYPE,OPTIONS /boot
    ask findmnt -no TARGET,SOURCE,FSTYPE,OPTIONS /
    ask systemctl is-enabled grub2-once.service purge-kernels.service

    # modules and initramfs
    for file in "$root"/etc/depmod.d/*.conf "$root"/usr/lib/depmod.d/*.conf "$root"/lib/depmod.d/*.conf; do
        show "${file#"$root"}"
    done
    show /lib/modprobe.d/10-unsupported-modules.conf
    ask modinfo -k "$release" -F vermagic scsi_mod
    ask modinfo -k "$release" -F filename mpt3sas
    ask lsinitrd --kver "$release"
    ask find -L /lib/modules -maxdepth 5 -path '*weak-updates*'

    # what forbids, and what disturbs
    ask mokutil --sb-state
    ask sestatus
    ask fips-mode-setup --check
    show /sys/kernel/security/lockdown /sys/module/module/parameters/sig_enforce
    ask tuned-adm active
    ask kdumpctl status
    ask systemctl is-active tuned irqbalance kdump packagekit dnf-makecache.timer dnf-automatic.timer
    ask multipath -t
}

# each answer is cut at its longest, and all of it is masked
answers | awk -v longest="$longest" '
    /^### (status|not )/ { print; next }
    /^### / { lines = 0 }
    ++lines == longest { print "### cut here" }
    lines < longest { print }
' | mask
