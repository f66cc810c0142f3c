*** Settings ***
Documentation    Checks of a run of a new driver drop: every boot ran the drivers of its drop, settings are in effect,
...              the kernel log is clean, and no workload lost more than the margin.
...
...              storqual robot driver_drop --run runs/20261121T101500Z-adapter-4f2a --output acceptance

Library          storqual.robot_library.StorqualLibrary    run=${RUN}    bench=${BENCH}

Test Tags        needs-run


*** Variables ***
${RUN}           ${EMPTY}
${BENCH}         ${EMPTY}
# the largest losses that this suite's user accepts
${MARGIN}        8%
${CPU_MARGIN}    20%


*** Test Cases ***
No Session Failed To Be Provisioned
    [Documentation]    Each boot or reload that was started came up with its drop.
    No Session Should Have Failed To Be Provisioned

Each Drop Was One Build On Every Boot
    [Documentation]    One kernel and one build of each driver per drop.
    Each Drop Should Have Run One Build

Every Declared Setting Was Read Back And None Shown Without Effect
    [Documentation]    Reports how many settings were shown in effect, and which were only read back.
    Every Setting Should Be Read Back And None Shown Without Effect

The Kernel Log Of Every Batch Is Clean
    [Documentation]    No adapter or drive had an error while it was measured.
    Kernel Log Should Be Clean

No Workload Is Slower
    [Documentation]    A loss of more than the margin is excluded at every point.
    [Tags]    thresholds
    Workload Should Be No Worse Than Baseline    *    iops    margin=${MARGIN}

No Workload Costs More Processor Time
    [Documentation]    Service demand stays within its own margin at every point.
    [Tags]    thresholds
    Workload Should Be No Worse Than Baseline    *    cpu_us_per_io    margin=${CPU_MARGIN}
