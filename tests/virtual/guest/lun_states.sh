#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# What others do to the first iSCSI LUN of a bench whose targets are in its own kernel: lun_states.sh begin|end STATE
set -eu
name=iqn.2026-11.storqual:0 portal=10.53.0.2:3260 serial=15C0000001
wwid=naa.600140515c0000001000000000000000 bytes=1073741824
initiator=iqn.2026-11.storqual:initiator other=iqn.2026-11.storqual:other
core=/sys/kernel/config/target/core group=/sys/kernel/config/target/iscsi/$name/tpgt_1
store=$core/fileio_0/stranger file=/root/stranger.img kept=/run/lun_states
own=$(grep -l "$serial\$" $core/iblock_*/*/wwn/vpd_unit_serial)
own=${own%/wwn/*}

paths() { # the disks that have the name of the LUN
    grep -ls "$wwid" /sys/block/sd*/device/wwid | cut -d / -f 4
}

await() { # await N: until so many disks have it
    tries=0
    until [ "$(paths | wc -l)" -eq "$1" ]; do
        tries=$((tries + 1))
        [ $tries -lt 100 ]
        sleep 0.2
    done
}

session() { iscsiadm -m node -T $name -p $portal -I other "$@"; }

served() { # served INITIATOR NUMBER [STORE]: the target has a LUN of that number, and maps it
    mkdir -p $group/lun/lun_"$2" $group/acls/"$1"
    [ $# -lt 3 ] || ln -s "$3" $group/lun/lun_"$2"/store
    mkdir $group/acls/"$1"/lun_"$2"
    ln -s $group/lun/lun_"$2" $group/acls/"$1"/lun_"$2"/lun
}

unserved() { # unserved INITIATOR NUMBER: no longer mapped, and rests on nothing
    rm $group/acls/"$1"/lun_"$2"/lun*
    rmdir $group/acls/"$1"/lun_"$2"
    find $group/lun/lun_"$2" -maxdepth 1 -type l -delete
}

stranger() { # stranger SERIAL BYTES: a store over a sparse file
    modprobe target_core_file
    mkdir -p $store
    echo "fd_dev_name=$file,fd_dev_size=$2" > $store/control
    printf '%s' "$1" > $store/wwn/vpd_unit_serial
    printf STORQUAL > $store/wwn/vendor_id
    printf ISCSILUN > $store/wwn/product_id
    echo 1 > $store/enable
}

copied() {
    stranger $serial $bytes
    paths > $kept
    served $initiator 7 $store
    iscsiadm -m session -R
    await 2
}

uncopied() {
    for disk in $(paths | grep -vxf $kept); do echo 1 > /sys/block/"$disk"/device/delete; done
    unserved $initiator 7
    rmdir $group/lun/lun_7 $store
    rm $file
}

led_elsewhere() { # led_elsewhere SERIAL BYTES
    stranger "$1" "$2"
    unserved $initiator 0
    served $initiator 0 $store
}

led_back() {
    unserved $initiator 0
    served $initiator 0 "$own"
    rmdir $store
    rm $file
}

case "$1 $2" in
    "begin reserved")
        mkdir -p /var/target/pr # where the target keeps registrations
        served $other 0
        iscsiadm -m iface -I other -o new
        iscsiadm -m iface -I other -o update -n iface.initiatorname -v $other
        session -o new
        paths > $kept
        session --login
        await 2
        disk=/dev/$(paths | grep -vxf $kept)
        sg_persist --out --register --param-sark=0xabc "$disk"
        sg_persist --out --reserve --param-rk=0xabc --prout-type=1 "$disk"
        session --logout
        await 1
        ;;
    "end reserved")
        session -o delete
        iscsiadm -m iface -I other -o delete
        rm $group/acls/$other/lun_0/lun
        rmdir $group/acls/$other/lun_0 $group/acls/$other
        ;;
    "begin mounted") # by the target's own side, after the initiator read the empty LUN, which it keeps open
        exec 3< "/dev/$(paths)"
        head -c 9437184 <&3 > /dev/null
        sleep 600 <&3 > /dev/null 2>&1 &
        echo $! > $kept
        losetup /dev/loop7 "$(cat "$own/udev_path")"
        mkfs.ext4 -q -F /dev/loop7 65536k
        mount -o noinit_itable /dev/loop7 /mnt
        sync
        ;;
    "end mounted")
        umount /mnt
        losetup -d /dev/loop7
        kill "$(cat $kept)"
        for end in 0 1015; do dd if=/dev/zero of="/dev/$(paths)" bs=1M count=9 seek=$end conv=fsync; done
        ;;
    "begin copied") copied ;;
    "end copied") uncopied ;;
    "begin mapped") # multipath takes the copy for a second path
        copied
        modprobe -a dm-multipath dm-round-robin
        disks=$(paths | sed 's,.*,/dev/& 1,' | tr '\n' ' ')
        echo "0 $((bytes / 512)) multipath 0 0 1 1 round-robin 0 2 1 $disks" |
            dmsetup create sqcopy --uuid "mpath-3${wwid#naa.}"
        ;;
    "end mapped")
        dmsetup remove --retry sqcopy
        uncopied
        ;;
    "begin resized") led_elsewhere $serial $((2 * bytes)) ;;
    "begin led_elsewhere") led_elsewhere 15C00000FF $bytes ;;
    "end resized" | "end led_elsewhere") led_back ;;
esac
