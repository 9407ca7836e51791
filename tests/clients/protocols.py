"""Sends requests over HTTP/1.1, HTTP/2 and HTTP/3 as they are told, also such as no library would send.

Standard input is JSON: {"host": ..., "port": ..., "authority": FILE, "protocol": "h1"|"h2"|"h3", "requests": [...]}.
A request is {"headers": [[name, value], ...], "body": TEXT or null, "trailers": [[name, value], ...]}; pseudo headers
are headers, with their names of HTTP/2, and over HTTP/1 become the request line and Host. Each request has a connection
of its own, so that none suffers for another. Standard output is JSON, for each request
{"status": N or 0, "interim": [N, ...], "headers": [[name, value], ...], "body": TEXT, "error": TEXT or null}.
"""

import asyncio
import json
import socket
import ssl
import sys

SECONDS = 10


def empty():
    return {"status": 0, "interim": [], "headers": [], "body": "", "error": None}


def take_head(answer, headers):
    """A head that came: an interim one, or the final one."""
    fields = [[bytes(name).decode("latin-1").lower(), bytes(value).decode("latin-1")] for name, value in headers]
    status = int(dict(map(tuple, fields)).get(":status", "0"))
    if 100 <= status < 200:
        answer["interim"].append(status)
    elif answer["status"] == 0:
        answer["status"] = status
        answer["headers"] = [field for field in fields if field[0] != ":status"]


def connect(job, alpn):
    context = ssl.create_default_context(cafile=job["authority"])
    context.set_alpn_protocols([alpn])
    plain = socket.create_connection(("127.0.0.1", job["port"]), timeout=SECONDS)
    plain.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    stream = context.wrap_socket(plain, server_hostname=job["host"])
    assert stream.selected_alpn_protocol() == alpn
    return stream


def over_h1(job, request):
    answer = empty()
    pseudo = {name: value for name, value in request["headers"] if name.startswith(":")}
    lines = ["%s %s HTTP/1.1" % (pseudo[":method"], pseudo[":path"])]
    if ":authority" in pseudo:
        lines.append("Host: " + pseudo[":authority"])
    lines += ["%s: %s" % (name, value) for name, value in request["headers"] if not name.startswith(":")]
    body = (request["body"] or "").encode("latin-1")
    has_length = any(name == "content-length" for name, _ in request["headers"])
    if request["body"] is not None and not has_length:
        lines.append("Transfer-Encoding: chunked")
        trailers = "".join("%s: %s\r\n" % (name, value) for name, value in request["trailers"])
        body = b"%x\r\n%s\r\n" % (len(body), body) + b"0\r\n" + trailers.encode("latin-1") + b"\r\n"
    lines.append("Connection: close")
    with connect(job, "http/1.1") as stream:
        stream.sendall(("\r\n".join(lines) + "\r\n\r\n").encode("latin-1") + body)
        received = b""
        try:
            while piece := stream.recv(65536):
                received += piece
        except OSError as error:
            answer["error"] = str(error)
    while answer["status"] == 0 and b"\r\n\r\n" in received:
        head, received = received.split(b"\r\n\r\n", 1)
        first, *rest = head.split(b"\r\n")
        fields = [(b":status", first.split(b" ")[1])]
        take_head(answer, fields + [tuple(line.split(b": ", 1)) for line in rest])
    if dict(map(tuple, answer["headers"])).get("transfer-encoding") == "chunked":
        rest, received = received, b""
        while True:
            size, rest = rest.split(b"\r\n", 1)
            if int(size, 16) == 0:
                break
            received += rest[: int(size, 16)]
            rest = rest[int(size, 16) + 2 :]
    answer["body"] = received.decode("latin-1")
    return answer


def over_h2(job, request):
    """With frames made by hand: hyper-h2 itself refuses to send what is wrong."""
    from hpack import Decoder, Encoder
    from hyperframe.frame import DataFrame, Frame, GoAwayFrame, HeadersFrame, PingFrame, RstStreamFrame
    from hyperframe.frame import SettingsFrame, WindowUpdateFrame

    answer, encoder, decoder = empty(), Encoder(), Decoder()

    def block(headers):
        return encoder.encode([(name.encode("latin-1"), value.encode("latin-1")) for name, value in headers])

    head = HeadersFrame(1, data=block(request["headers"]), flags=["END_HEADERS"])
    frames = [SettingsFrame(0, settings={2: 0, 4: 1 << 20}), WindowUpdateFrame(0, window_increment=1 << 20), head]
    if request["body"] is not None:
        frames.append(DataFrame(1, data=request["body"].encode("latin-1")))
    if request["trailers"]:
        frames.append(HeadersFrame(1, data=block(request["trailers"]), flags=["END_HEADERS"]))
    frames[-1].flags.add("END_STREAM")
    with connect(job, "h2") as stream:
        try:
            stream.sendall(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + b"".join(frame.serialize() for frame in frames))

            def exactly(count):
                received = b""
                while len(received) < count:
                    piece = stream.recv(count - len(received))
                    if not piece:
                        raise OSError("the connection ended")
                    received += piece
                return received

            while True:
                frame, length = Frame.parse_frame_header(memoryview(exactly(9)))
                frame.parse_body(memoryview(exactly(length)))
                if isinstance(frame, SettingsFrame) and "ACK" not in frame.flags:
                    stream.sendall(SettingsFrame(0, flags=["ACK"]).serialize())
                elif isinstance(frame, PingFrame) and "ACK" not in frame.flags:
                    stream.sendall(PingFrame(0, opaque_data=frame.opaque_data, flags=["ACK"]).serialize())
                elif isinstance(frame, HeadersFrame):
                    take_head(answer, decoder.decode(frame.data, raw=True))
                elif isinstance(frame, DataFrame):
                    answer["body"] += frame.data.decode("latin-1")
                elif isinstance(frame, RstStreamFrame):
                    answer["error"] = "reset %d" % frame.error_code
                    break
                elif isinstance(frame, GoAwayFrame) and frame.error_code != 0:
                    answer["error"] = "goaway %d" % frame.error_code
                    break
                if frame.stream_id == 1 and "END_STREAM" in frame.flags:
                    break
        except OSError as error:
            answer["error"] = str(error)
    return answer


async def over_h3(job, request):
    from aioquic.asyncio import QuicConnectionProtocol
    from aioquic.asyncio.client import connect as connect_quic
    from aioquic.h3.connection import H3_ALPN, H3Connection
    from aioquic.h3.events import DataReceived, HeadersReceived
    from aioquic.quic.configuration import QuicConfiguration
    from aioquic.quic.events import ConnectionTerminated, StreamReset

    answer, done = empty(), asyncio.get_running_loop().create_future()

    def fields(headers):
        return [(name.encode("latin-1"), value.encode("latin-1")) for name, value in headers]

    class Client(QuicConnectionProtocol):
        http = None

        def quic_event_received(self, event):
            if isinstance(event, StreamReset):
                self.end("reset %d" % event.error_code)
            elif isinstance(event, ConnectionTerminated):
                self.end("closed %d %s" % (event.error_code, event.reason_phrase))
            for happened in self.http.handle_event(event) if self.http else []:
                if isinstance(happened, HeadersReceived):
                    take_head(answer, happened.headers)
                elif isinstance(happened, DataReceived):
                    answer["body"] += happened.data.decode("latin-1")
                if getattr(happened, "stream_ended", False):
                    self.end(None)

        def end(self, error):
            if not done.done():
                answer["error"] = error
                done.set_result(None)

    quic = QuicConfiguration(is_client=True, alpn_protocols=H3_ALPN, server_name=job["host"])
    quic.load_verify_locations(cafile=job["authority"])
    async with connect_quic("127.0.0.1", job["port"], configuration=quic, create_protocol=Client) as client:
        client.http = H3Connection(client._quic)
        stream = client._quic.get_next_available_stream_id()
        body, trailers = request["body"], request["trailers"]
        client.http.send_headers(stream, fields(request["headers"]), end_stream=body is None and not trailers)
        if body is not None:
            client.http.send_data(stream, body.encode("latin-1"), end_stream=not trailers)
        if trailers:
            client.http.send_headers(stream, fields(trailers), end_stream=True)
        client.transmit()
        try:
            await asyncio.wait_for(done, SECONDS)
        except asyncio.TimeoutError:
            answer["error"] = "timed out"
    return answer


def main():
    job = json.load(sys.stdin)
    send = {
        "h1": over_h1,
        "h2": over_h2,
        "h3": lambda job, request: asyncio.run(over_h3(job, request)),
    }[job["protocol"]]
    json.dump([send(job, request) for request in job["requests"]], sys.stdout)


main()
