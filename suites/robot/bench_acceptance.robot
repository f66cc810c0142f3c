*** Settings ***
Documentation    Cabling and identity of a bench: every expected drive on its adapter and port, link rates, firmware
...              levels, write caches, throttles. For a technician who has just built, moved or repaired a bench:
...
...              storqual robot bench_acceptance -i inventories/virtual
...
...              All problems are reported together. With --run it reads what preflight found before a campaign.

Library          storqual.robot_library.StorqualLibrary    run=${RUN}    inventory=${INVENTORY}    bench=${BENCH}

Suite Setup      Look At The Bench

Test Tags        needs-adapters


*** Variables ***
${RUN}                     ${EMPTY}
${INVENTORY}               ${EMPTY}
${BENCH}                   ${EMPTY}
# the throttle to prove on an adapter: --variable THROTTLED_ADAPTER:sym --variable THROTTLE:4
${THROTTLED_ADAPTER}       ${EMPTY}
${THROTTLE}                ${EMPTY}
# the management controller to ask; its password is in the environment (STORQUAL_BMC_PASSWORD)
${BMC}                     ${EMPTY}
${BMC_USER}                ${EMPTY}
${BMC_PASSWORD: Secret}    %{STORQUAL_BMC_PASSWORD=}


*** Test Cases ***
Every Adapter Is Here With Its Driver
    [Documentation]    Each alias of the inventory is bound to the kernel driver that the inventory expects.
    Every Adapter Should Run Its Driver

Every Drive Is On Its Adapter And Port
    [Documentation]    No cable was swapped, no drive is missing, none is offline.
    Every Expected Drive Should Be In Place
    Every Drive Should Be Running

No Drive Is Here That The Inventory Does Not Know
    [Documentation]    A drive that is not in the inventory cannot be claimed.
    [Tags]    live
    No Unknown Drive Should Be Attached

Drives Of One Model Run At One Link Rate
    [Documentation]    If one drive's link rate differs from the others, suspect its cable.
    Drives Of One Model Should Agree On    link rate

PCI Express Links That Are Shown Run At Full Rate
    [Documentation]    A narrow slot or a bad riser slows all drives behind it; adapters without such a link are listed.
    Every Adapter Link That Is Shown Should Run At Full Rate

Drive Firmware Is That Of The Inventory
    [Documentation]    Each drive runs the firmware that its inventory entry names.
    Drive Firmware Levels Should Match The Inventory

Drives Of One Model Run One Firmware
    [Documentation]    Drives of one model on one adapter are compared with each other.
    Drives Of One Model Should Agree On    firmware

Write Caches Of One Model Are Alike
    [Documentation]    One drive whose cache differs makes the whole set slower, or unsafe.
    Drives Of One Model Should Agree On    write cache

Queue Depths Of One Model Are Alike
    [Documentation]    Drives of one model on one adapter have the same queue depth.
    Drives Of One Model Should Agree On    queue depth

The Throttle That Was Named Is In Effect
    [Documentation]    The commands in flight show it; it is not only read back.
    [Tags]    throttle
    Skip If    not $THROTTLED_ADAPTER    no throttle was named (--variable THROTTLED_ADAPTER:<alias>)
    Execution Throttle Should Be In Effect    ${THROTTLED_ADAPTER}    ${THROTTLE}

The Kernel Log Is Clean Since The Bench Booted
    [Documentation]    No reset, timeout, sense error, bus error or oops.
    [Tags]    live    -needs-adapters
    Kernel Log Should Be Clean

The Management Controller Sees A Healthy Bench
    [Documentation]    What the BMC reports: fans, power, memory, temperature.
    [Tags]    live    -needs-adapters
    Skip If    not $BMC    no management controller was named (--variable BMC:https://...)
    Connect To BMC    ${BMC}    ${BMC_USER}    ${BMC_PASSWORD}
    BMC Should Report Health    OK
