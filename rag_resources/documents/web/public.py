"""Decides which addresses may be requested: none of this machine or network, unless allowed.

A name is resolved once, and the connection goes to the address that was checked. So a name server
that answers differently the second time gains nothing (DNS rebinding).
"""

import socket
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv6Address, ip_address, ip_network

import httpx

from rag_resources.core.errors import InvalidSourceError
from rag_resources.core.quoting import shown
from rag_resources.languages.messages import _

_EMBEDDING = tuple(map(ip_network, ("64:ff9b::/96", "64:ff9b:1::/48", "2002::/16", "2001::/32")))
"""IPv6 networks whose addresses stand for IPv4 ones, which may be private: NAT64, 6to4, Teredo."""


class AddressRefusedError(InvalidSourceError):
    """An address may not be requested."""


class NameUnknownError(InvalidSourceError):
    """A host has no address, at least for now."""


@dataclass(frozen=True, slots=True)
class Target:
    """Where to connect for a URL.

    Attributes:
        url: The URL with the address instead of the name.
        host: The header `Host`, as in the URL.
        name: The name that a certificate must have.
    """

    url: httpx.URL
    host: str
    name: str


def without_credentials(url: str) -> str:
    """Return a URL for messages and logs: without user, password and query."""
    try:
        parsed = httpx.URL(url)
    except (httpx.InvalidURL, ValueError):
        return shown(url)
    return str(parsed.copy_with(userinfo=b"", query=None, fragment=None))


def target_of(url: httpx.URL, *, allow_private: bool) -> Target:
    """Resolve the host of a URL, and check every address that it has.

    Raises:
        AddressRefusedError: It is not http or https, or leads to a private address.
        NameUnknownError: The host cannot be found.
    """
    if url.scheme not in ("http", "https") or not url.host:
        raise AddressRefusedError(
            _("“{url}” is no http or https address").format(url=without_credentials(str(url)))
        )
    addresses = _resolve(url.host)
    if not allow_private:
        for address in addresses:
            if not is_public(address):
                raise AddressRefusedError(
                    _(
                        "{url} leads to {address}, which is no public address; if it is yours, "
                        "set DOWNLOAD__ALLOW_PRIVATE=true"
                    ).format(url=without_credentials(str(url)), address=str(address))
                )
    chosen = addresses[0]
    host = f"[{chosen}]" if isinstance(chosen, IPv6Address) else str(chosen)
    return Target(url.copy_with(host=host), url.netloc.decode("ascii"), url.host)


def is_public(address: IPv4Address | IPv6Address) -> bool:
    """Whether an address belongs to the public internet."""
    if isinstance(address, IPv6Address):
        if address.ipv4_mapped:
            return is_public(address.ipv4_mapped)
        if address.scope_id or any(address in network for network in _EMBEDDING):
            return False
    return address.is_global and not address.is_multicast and not address.is_reserved


def _resolve(host: str) -> list[IPv4Address | IPv6Address]:
    try:
        found = socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)
        return list(dict.fromkeys(ip_address(each[4][0]) for each in found))
    except (OSError, UnicodeError, ValueError) as error:
        raise NameUnknownError(
            _("the server “{host}” is not found").format(host=shown(host))
        ) from error
