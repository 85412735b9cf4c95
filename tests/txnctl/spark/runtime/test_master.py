"""The look at a master's address, against real sockets."""

from __future__ import annotations

import socket

import pytest

from storage.errors import ClusterUnreachable, InvalidValue
from txnctl.spark.runtime.master import Address, addresses, check_reachable


@pytest.mark.parametrize(
    ("master", "named"),
    [
        ("local[*]", []),
        ("local-cluster[1,1,1024]", []),
        ("yarn", []),
        ("spark://a:7000", [Address("a", 7000)]),
        ("spark://a,b:7078", [Address("a", 7077), Address("b", 7078)]),
        ("spark://[::1]:7078", [Address("::1", 7078)]),
        ("k8s://https://api.example:6443", [Address("api.example", 6443)]),
        ("sc://a:15003/;token=x", [Address("a", 15003)]),
    ],
)
def test_the_addresses_of_a_master(master: str, named: list[Address]) -> None:
    """None where Spark starts its processes itself, or finds the cluster in files of its own."""
    assert addresses(master) == named


def test_a_port_that_is_no_number_is_refused() -> None:
    """With the form to write."""
    with pytest.raises(InvalidValue, match="'a:x' is not host:port"):
        addresses("spark://a:x")


def test_a_master_that_takes_connections_is_reachable() -> None:
    """One of several is enough."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        check_reachable(f"spark://127.0.0.1:1,127.0.0.1:{port}")


def test_a_master_without_an_answer_is_named_with_host_port_and_reason() -> None:
    """No such host, no such port, and a full queue of connections, which answers nothing at all."""
    with pytest.raises(ClusterUnreachable, match=r"at nohost\.invalid:7077: no such host") as caught:
        check_reachable("spark://nohost.invalid:7077")
    assert caught.value.retryable
    with pytest.raises(ClusterUnreachable, match=r"at 127\.0\.0\.1:1: connection refused"):
        check_reachable("spark://127.0.0.1:1")
    with socket.create_server(("127.0.0.1", 0), backlog=0) as server, socket.socket() as first:
        address = server.getsockname()
        first.connect(address)
        with pytest.raises(ClusterUnreachable, match=rf"127\.0\.0\.1:{address[1]}: no answer within 0\.3 s"):
            check_reachable(f"spark://127.0.0.1:{address[1]}", timeout_s=0.3)
