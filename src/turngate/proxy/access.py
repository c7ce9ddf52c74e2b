"""Who may use the proxy's own endpoints: this machine, or whoever shows the token. Pure."""

from __future__ import annotations

import hmac
import ipaddress
from typing import TYPE_CHECKING, Final

from turngate.errors import SettingsError

if TYPE_CHECKING:
    from turngate.settings import ProxySettings

_NAMES: Final = frozenset({"localhost", "localhost."})
_BEARER: Final = "bearer "


def check_bind(settings: ProxySettings) -> None:
    """Refuse to offer originals to a network without a token.

    Raises:
        SettingsError: the address is not loopback, and there is no token.
    """
    if not is_loopback(settings.host) and not settings.token:
        raise SettingsError(
            f"host is {settings.host!r}, which others can reach; set proxy.token (TURNGATE_PROXY_TOKEN), or "
            "listen at 127.0.0.1"
        )


def allowed(settings: ProxySettings, peer: str | None, host: str, authorization: str) -> bool:
    """Whether a request may use our own endpoints.

    Args:
        settings: of the proxy.
        peer: the address that it comes from; None where it is unknown.
        host: its header `Host`: a page in a browser on this machine names another one.
        authorization: its header `Authorization`.
    """
    if settings.token:
        given = authorization[len(_BEARER) :] if authorization.lower().startswith(_BEARER) else ""
        return hmac.compare_digest(given.encode(), settings.token.encode())
    return peer is not None and is_loopback(peer) and is_loopback(_without_port(host))


def is_loopback(host: str) -> bool:
    """Whether an address or a name means this machine only."""
    if host.lower() in _NAMES:
        return True
    try:
        address = ipaddress.ip_address(host.strip("[]").partition("%")[0])
    except ValueError:
        return False
    mapped = getattr(address, "ipv4_mapped", None)
    return (mapped or address).is_loopback


def _without_port(host: str) -> str:
    if host.startswith("["):
        return host.partition("]")[0] + "]"
    return host.rpartition(":")[0] if host.count(":") == 1 else host
