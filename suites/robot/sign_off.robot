*** Settings ***
Documentation    What must hold before a release manager signs a run: nothing is untested, nothing was written outside
...              the claims, the bench was put back, the evidence is complete, and the verdict is a pass.
...
...              storqual robot sign_off --run runs/20261121T101500Z-adapter-4f2a --output acceptance

Library          storqual.robot_library.StorqualLibrary    run=${RUN}    bench=${BENCH}

Test Tags        needs-run


*** Variables ***
${RUN}      ${EMPTY}
${BENCH}    ${EMPTY}


*** Test Cases ***
Nothing Planned Is Untested
    [Documentation]    Both drops have finished launches at every point that was not skipped with a reason.
    Every Planned Point Should Be Measured

Nothing Was Written Outside Claims
    [Documentation]    The guard counted every disk of the bench.
    Nothing Should Be Written Outside Claims

What Was Provisioned Was Put Back
    [Documentation]    Every value that the run saved before it wrote was put back and read back.
    What Was Provisioned Should Be Put Back

Inputs Are Those Of The Plan
    [Documentation]    Suite, gate, drops and inventory were not edited after the plan.
    Inputs Should Be As Planned

The Evidence Is Whole
    [Documentation]    Every raw file that a sample names is in the run, with its digest.
    Evidence Should Be Complete

The Verdict Permits Signing
    [Documentation]    The gate passed, and every point that was not measured has a reason.
    [Tags]    after-verdict
    Verdict Should Permit Signing
