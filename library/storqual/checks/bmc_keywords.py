# SPDX-License-Identifier: Apache-2.0
"""Keywords about what a bench's board management controller (BMC) says over Redfish; its password is a Secret."""

import base64
import json
import ssl
import urllib.parse
import urllib.request
from dataclasses import dataclass
from typing import Any

from robot.api.deco import keyword
from robot.api.types import Secret

from storqual.base.web import web_answer
from storqual.checks.seen import NotJudgedError
from storqual_core.kit.errors import ToolError
from storqual_core.tools.redfish import find_version

_TIMEOUT_S = 30.0
_LARGEST = 1 << 22
"""Bytes of a resource: a list of a full rack has some 100 KiB."""
_INVENTORY = "/redfish/v1/UpdateService/FirmwareInventory"


@dataclass(frozen=True)
class _Bmc:
    """Where to ask; `authorization` never reaches a log or a message."""

    address: str
    authorization: str
    context: ssl.SSLContext


class BmcKeywords:
    """Reads only. The password comes as a Secret, so that no log of any level shows it."""

    _bmc: _Bmc | None = None

    @keyword
    def connect_to_bmc(self, address: str, user: str, password: Secret, authority: str | None = None) -> None:
        """Use this BMC from now on: ``https://...``, a user, and the password as a Secret.

        ``authority`` is a file with the certificate that signed the BMC's; without it the system's are trusted.

        | VAR    ${PASSWORD: Secret}    %{STORQUAL_BMC_PASSWORD} |
        | `Connect To BMC` | https://bench01-bmc.lab | operator | ${PASSWORD} |
        """
        parts = urllib.parse.urlsplit(address)
        loopback = parts.hostname in ("127.0.0.1", "::1", "localhost")
        if parts.scheme != "https" and not (parts.scheme == "http" and loopback):
            raise NotJudgedError(f"BMC {address}: a password is sent over https only")
        pair = base64.b64encode(f"{user}:{password.value}".encode()).decode()
        context = ssl.create_default_context(cafile=authority)
        self._bmc = _Bmc(address.rstrip("/"), f"Basic {pair}", context)

    @keyword
    def bmc_should_report_firmware(self, component: str, version: str) -> None:
        """A component of the BMC's firmware inventory, by name or id, has this version."""
        members = self._get(_INVENTORY).get("Members") or ()
        entries = [self._get(str(member.get("@odata.id"))) for member in members]
        if not any(component in (entry.get("Id"), entry.get("Name")) for entry in entries):
            components = ", ".join(str(entry.get("Id") or entry.get("Name")) for entry in entries) or "nothing"
            raise NotJudgedError(f"the BMC's firmware inventory has no {component!r}, only {components}")
        try:
            reported = find_version(entries, component)
        except ToolError as problem:
            raise NotJudgedError(str(problem)) from None
        if reported != version:
            raise AssertionError(f"the BMC reports {component} {reported}, not {version}")

    @keyword
    def bmc_should_report_health(self, health: str = "OK") -> None:
        """Every system behind the BMC reports this health."""
        for member in self._get("/redfish/v1/Systems").get("Members") or ():
            system = self._get(str(member.get("@odata.id")))
            status = system.get("Status") or {}
            reported = status.get("HealthRollup") or status.get("Health")
            if reported != health:
                raise AssertionError(f"the BMC reports {system.get('Id')} as {reported}, not {health}")

    def _get(self, path: str) -> dict[str, Any]:
        if self._bmc is None:
            raise NotJudgedError("no BMC is connected; `Connect To BMC` comes first")
        request = urllib.request.Request(  # noqa: S310 - the scheme was checked when the BMC was named
            self._bmc.address + path,
            headers={"Authorization": self._bmc.authorization, "Accept": "application/json"},
        )
        try:
            trust = urllib.request.HTTPSHandler(context=self._bmc.context)
            resource = json.loads(web_answer(request, limit_s=_TIMEOUT_S, most=_LARGEST, handlers=[trust]))
        except (OSError, ValueError) as problem:
            raise NotJudgedError(f"BMC {self._bmc.address}{path}: {problem}") from None
        if not isinstance(resource, dict):
            kind = type(resource).__name__
            raise NotJudgedError(f"BMC {self._bmc.address}{path}: found {kind}, expected an object")
        return resource
