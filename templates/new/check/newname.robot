*** Settings ***
Documentation    A check in plain words, of a bench that answers now or of a run that was measured.
...
...              `storqual keywords keywords.html` writes a page of all keywords with their arguments.

Library          storqual.robot_library.StorqualLibrary    run=${RUN}    inventory=${INVENTORY}    bench=${BENCH}


*** Variables ***
${RUN}          ${EMPTY}
${INVENTORY}    ${EMPTY}
${BENCH}        ${EMPTY}


*** Test Cases ***
The Bench Answers
    [Documentation]    It tells what it is made of; one that is silent is an ERROR. Only of a bench that is asked now.
    [Tags]    live
    Look At The Bench

Drives Are Alike
    [Documentation]    Drives of one model on one adapter run one firmware. Files of this machine have none.
    [Tags]    needs-adapters
    Drives Of One Model Should Agree On    firmware
