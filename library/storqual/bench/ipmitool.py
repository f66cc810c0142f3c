# SPDX-License-Identifier: Apache-2.0
"""ipmitool: the words by which it reaches a management controller, and its password, which is in no argument."""

from pydantic import SecretStr

from storqual.inputs.bmc import Bmc


def ipmitool_words(bmc: Bmc) -> list[str]:
    """The program and its options, before what it is to do."""
    suite = [] if bmc.cipher is None else ["-C", str(bmc.cipher)]
    return ["ipmitool", "-I", "lanplus", "-E", "-U", bmc.user, "-H", bmc.host, "-p", str(bmc.port), *suite]


def ipmitool_environment(password: SecretStr | None) -> dict[str, str]:
    """What `-E` reads; nothing where the environment of the control node is to have it."""
    if password is None:
        return {}
    # of the two names that it reads, one may be set already
    return dict.fromkeys(("IPMI_PASSWORD", "IPMITOOL_PASSWORD"), password.get_secret_value())
