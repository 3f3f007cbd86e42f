"""Lets the host into the cluster: `python -m tests.cluster.forward SOCKET_FD`, started by `supervisor`.

The listening socket was opened on the host and handed down; sockets stay in the network namespace that they were
made in, so this process, inside the cluster, accepts on the host's loopback and connects to the cluster's.
"""

from __future__ import annotations

import asyncio
import contextlib
import socket
import sys

from tests.cluster.layout import INNER_ADDRESS


async def _pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with contextlib.suppress(ConnectionError):
        while chunk := await reader.read(65536):
            writer.write(chunk)
            await writer.drain()
    writer.close()


async def _serve(listener: socket.socket) -> None:
    async def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            inner_reader, inner_writer = await asyncio.open_connection(*INNER_ADDRESS)
        except OSError:
            writer.close()
            return
        await asyncio.gather(_pump(reader, inner_writer), _pump(inner_reader, writer))

    server = await asyncio.start_server(accept, sock=listener)
    await server.serve_forever()


if __name__ == "__main__":
    asyncio.run(_serve(socket.socket(fileno=int(sys.argv[1]))))
