"""Whose address a request came from, when proxies that we trust stand before us.

The socket's peer can't lie. A header can, so it is read only when the peer is a trusted proxy, and from the
right: each trusted hop vouches for the one to its left, and for nothing further.
"""

import ipaddress
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Self, TypeAlias

Address: TypeAlias = ipaddress.IPv4Address | ipaddress.IPv6Address
Network: TypeAlias = ipaddress.IPv4Network | ipaddress.IPv6Network

# Some proxies add the port: 192.0.2.1:4711, [2001:db8::1]:4711.
_WITH_PORT = re.compile(r"\[(?P<v6>[^\]]*)\](?::\d+)?|(?P<v4>[\d.]+):\d+", re.ASCII)


@dataclass(frozen=True)
class TrustedProxies:
    networks: tuple[Network, ...] = ()

    @classmethod
    def of(cls, written: Iterable[str]) -> Self:
        """From addresses and networks such as 127.0.0.1 and 10.0.0.0/8; anything else is a ValueError."""
        return cls(tuple(ipaddress.ip_network(one) for one in written))

    def client_of(self, peer: str | None, forwarded: Sequence[str]) -> str | None:
        """The right-most address that is no trusted proxy. What can't be read counts for the hop that sent it."""
        vouching = None if peer is None else read_address(peer)
        if vouching is None or not self._trusts(vouching):
            return peer
        for hop in reversed(",".join(forwarded).split(",")):
            address = read_address(hop)
            if address is None:
                break
            vouching = address
            if not self._trusts(address):
                break
        return str(vouching)

    def _trusts(self, address: Address) -> bool:
        return any(address in network for network in self.networks)


def read_address(written: str) -> Address | None:
    """One hop of X-Forwarded-For, or the socket's peer; an IPv4 address in IPv6 clothes is an IPv4 address."""
    word = written.strip()
    if match := _WITH_PORT.fullmatch(word):
        word = match["v6"] or match["v4"] or ""
    try:
        address = ipaddress.ip_address(word)
    except ValueError:
        return None
    mapped = address.ipv4_mapped if isinstance(address, ipaddress.IPv6Address) else None
    return mapped or address
