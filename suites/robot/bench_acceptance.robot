*** Settings ***
Documentation    Cabling and identity of a bench: every expected drive on its adapter and port, link rates, firmware
...              levels, write caches, throttles. For a technician who has just built, moved or repaired one:
...
...              storqual robot bench_acceptance -i inventories/virtual
...
...              All problems are reported together. With --run it reads what preflight saw before a campaign.

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
    [Documentation]    A drive that nobody described can be claimed by nobody.
    [Tags]    live
    No Unknown Drive Should Be Attached

Drives Run At One Link Rate
    [Documentation]    The odd one out is a bad cable.
    Drives Of One Model Should Agree On    link rate

Adapters Run At The Full Rate Of Their Slots
    [Documentation]    A narrow slot or a bad riser slows every drive behind it.
    Every Adapter Link Should Run At Full Rate

Firmware Levels Are Those Of The Inventory
    [Documentation]    Drives of one model on one adapter run one firmware, the one that the inventory names.
    Drive Firmware Levels Should Match The Inventory
    Drives Of One Model Should Agree On    firmware

Write Caches Are Alike
    [Documentation]    One drive with its cache off makes a whole set slower, or the others unsafe.
    Drives Of One Model Should Agree On    write cache

Throttles Are Alike And In Effect
    [Documentation]    Queue depths agree; a throttle that was named is shown in effect, not only read back.
    Drives Of One Model Should Agree On    queue depth
    IF    $THROTTLED_ADAPTER
        Execution Throttle Should Be In Effect    ${THROTTLED_ADAPTER}    ${THROTTLE}
    END

The Kernel Log Is Clean Since The Bench Booted
    [Documentation]    No reset, timeout, sense error, bus error or oops.
    [Tags]    live    -needs-adapters
    Kernel Log Should Be Clean

The Management Controller Sees A Healthy Bench
    [Documentation]    The board's own view: fans, power, memory, temperature.
    [Tags]    live    -needs-adapters
    Skip If    not $BMC    no management controller was named (--variable BMC:https://...)
    Connect To BMC    ${BMC}    ${BMC_USER}    ${BMC_PASSWORD}
    BMC Should Report Health    OK
