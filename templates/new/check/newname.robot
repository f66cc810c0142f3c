*** Settings ***
Documentation    A check of a bench that answers now, or of a run that was measured.
...
...              `storqual keywords keywords.html` writes a page of all keywords with their arguments.

Library          storqual.robot_library.StorqualLibrary    run=${RUN}    inventory=${INVENTORY}    bench=${BENCH}


*** Variables ***
${RUN}          ${EMPTY}
${INVENTORY}    ${EMPTY}
${BENCH}        ${EMPTY}


*** Test Cases ***
The Bench Answers
    [Documentation]    The bench reports its facts; a bench that does not answer is an ERROR. Only for a live bench.
    [Tags]    live
    Look At The Bench

Drives Are Alike
    [Documentation]    Drives of one model on one adapter run the same firmware. Files of this machine have none.
    [Tags]    needs-adapters
    Drives Of One Model Should Agree On    firmware
