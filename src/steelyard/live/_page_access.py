"""Who may use a page: browsers that show this very page, by an address of this machine.

A browser sends two facts that a website cannot forge. `Host` is the address in its address bar or
in the request of a script, `Origin` the website that a script belongs to. A connection is the
page's own if both are the same. A foreign website has another origin. One whose name was turned to
this machine after it was loaded (DNS rebinding) has its own name in both, so that `Host` has to be
a name or an address of this machine as well.
"""

from __future__ import annotations

import contextlib
import inspect
import ipaddress
import socket
from collections.abc import Awaitable, Callable, Iterator
from http import HTTPStatus
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

if TYPE_CHECKING:
    from websockets.asyncio.server import ServerConnection
    from websockets.http11 import Request, Response

THIS_MACHINE = ("127.0.0.1", "localhost", "::1")
"""Hosts at which a page is for this machine alone."""

_ALL_ADDRESSES = ("0.0.0.0", "::")
_ELSEWHERE = ("203.0.113.1", 9)
"""An address that no machine has; the route to it begins at the address that others reach."""


def page_url(host: str, port: int) -> str:
    """The address of a page, as a browser on another machine can open it where it may.

    Args:
        host: address that the page listens at
        port: that it listens at
    """
    if host in _ALL_ADDRESSES:
        host = _reachable_host()
    if ":" in host:
        host = f"[{host}]"
    return f"http://{host}:{port}"


def _reachable_host() -> str:
    """This machine's address on its network; its name where nothing tells the address."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect(_ELSEWHERE)  # which sends nothing
            return str(probe.getsockname()[0])
        except OSError:
            return socket.gethostname()


def own_names(host: str) -> frozenset[str]:
    """The names that a page may be opened by, in lower case.

    Args:
        host: address that the page listens at
    """
    names = {"localhost"}
    if host not in THIS_MACHINE:
        own = socket.gethostname()
        names |= {host, own, socket.getfqdn(), f"{own.partition('.')[0]}.local"}
    return frozenset(name.lower() for name in names)


def is_own_host(host: str, names: frozenset[str], local_address: str) -> bool:
    """Whether a request's `Host` is this machine.

    Args:
        host: value of the header, NAME or NAME:PORT
        names: of this machine
        local_address: address of this machine at which the request has arrived
    """
    try:
        name = urlsplit(f"http://{host}").hostname or ""
    except ValueError:
        return False
    if name in names:
        return True
    try:
        return _address(name) == _address(local_address)
    except ValueError:
        return False


def _address(text: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address:
    address = ipaddress.ip_address(text)
    if isinstance(address, ipaddress.IPv6Address) and address.ipv4_mapped is not None:
        return address.ipv4_mapped
    return address


@contextlib.contextmanager
def own_browsers_only(host: str) -> Iterator[None]:
    """Servers of viser that are started inside accept browsers on their own page only.

    viser has no setting for this and looks `serve` of websockets up when it starts. Servers that
    others start meanwhile are left as they are.

    Args:
        host: address that the page listens at
    """
    from websockets.asyncio import server

    plain = server.serve
    names = own_names(host)

    def serve(handler: Callable[..., Awaitable[None]], *places: Any, **options: Any) -> Any:
        if handler.__module__.partition(".")[0] == "viser":
            options["process_request"] = _checked(options.get("process_request"), names)
        return plain(handler, *places, **options)

    setattr(server, "serve", serve)  # noqa: B010
    try:
        yield
    finally:
        setattr(server, "serve", plain)  # noqa: B010


def _checked(answer_of: Callable[..., Any] | None, names: frozenset[str]) -> Callable[..., Any]:
    """A function that answers a request, or refuses it.

    Args:
        answer_of: answers requests of files; None is its answer to a request of a WebSocket
        names: of this machine
    """

    async def checked(connection: ServerConnection, request: Request) -> Response | None:
        local = connection.local_address
        hosts = request.headers.get_all("Host")
        if len(hosts) != 1 or not is_own_host(hosts[0], names, local[0]):
            url = page_url(local[0], local[1])
            words = f"This is not the address of the page: open {url}\n"
            return connection.respond(HTTPStatus.FORBIDDEN, words)
        answer = None
        if answer_of is not None:
            answer = answer_of(connection, request)
            if inspect.isawaitable(answer):
                answer = await answer
        is_own_page = request.headers.get_all("Origin") == [f"http://{hosts[0]}"]
        if answer is None and not is_own_page:
            words = "Only the page itself may connect.\n"
            return connection.respond(HTTPStatus.FORBIDDEN, words)
        return answer

    return checked
