"""A client of `copal lsp` that speaks the protocol by itself: client.py PROGRAM DIRECTORY."""

import json
import os
import pathlib
import subprocess
import sys
import time

PROGRAM, DIRECTORY = sys.argv[1], pathlib.Path(sys.argv[2])


class Client:
    def __init__(self):
        self.server = subprocess.Popen([PROGRAM, "lsp"], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.number = 0
        self.notes = []

    def raw(self, data):
        self.server.stdin.write(data)
        self.server.stdin.flush()

    def send(self, **message):
        body = json.dumps({"jsonrpc": "2.0", **message}).encode()
        self.raw(b"Content-Length: %d\r\n\r\n" % len(body) + body)

    def read(self):
        length = None
        while (line := self.server.stdout.readline()) != b"\r\n":
            assert line, "the server has ended"
            length = int(line.split(b":")[1])
        return json.loads(self.server.stdout.read(length))

    def ask(self, method, **params):
        self.number += 1
        self.send(id=self.number, method=method, params=params)
        while True:
            message = self.read()
            if message.get("id") == self.number:
                return message
            self.notes.append(message)

    def result(self, method, **params):
        answer = self.ask(method, **params)
        assert "result" in answer, answer
        return answer["result"]

    def notify(self, method, **params):
        self.send(method=method, params=params)

    def open(self, uri, text):
        self.notify("textDocument/didOpen", textDocument={"uri": uri, "languageId": "vcl", "version": 1, "text": text})

    def diagnostics(self, uri):
        """The next diagnostics of a document."""
        self.notes.clear()
        while True:
            message = self.read()
            if message.get("method") == "textDocument/publishDiagnostics" and message["params"]["uri"] == uri:
                return message["params"]["diagnostics"]

    def start(self):
        assert self.result("initialize", capabilities={})["capabilities"]["positionEncoding"] == "utf-16"
        self.notify("initialized")

    def stop(self):
        self.result("shutdown")
        self.notify("exit")
        assert self.server.wait(20) == 0


def position(text, word, after=0):
    """Position of a word, in UTF-16 code units."""
    before = text[: text.index(word) + after]
    line = before.rpartition("\n")[2]
    return {"line": before.count("\n"), "character": len(line.encode("utf-16-le")) // 2}


MAIN = """vcl 4.1;
import std;
backend web { .host = "127.0.0.1"; }
include "part.vcl";
sub vcl_recv {
    set req.http.X = "é😀" + std.tolower(req.url); call helper;
    set req.htp = "x";
}
"""
PART = """sub helper {
    unset req.http.Y;
}
"""
main, part = (DIRECTORY / "main.vcl").as_uri(), (DIRECTORY / "part.vcl").as_uri()


def features():
    client = Client()
    client.start()
    client.open(main, MAIN)
    # part.vcl is not on disk: the editor's text counts.
    messages = client.diagnostics(main)
    assert any("part.vcl" in one["message"] for one in messages), messages
    client.open(part, PART)
    client.notify("textDocument/didChange", textDocument={"uri": main, "version": 2}, contentChanges=[{"text": MAIN}])
    messages = client.diagnostics(main)
    assert len(messages) == 1 and messages[0]["range"]["start"]["line"] == 6, messages
    document = {"uri": main}
    at = lambda word, after=0: {"textDocument": document, "position": position(MAIN, word, after)}
    assert "std.tolower" in client.result("textDocument/hover", **at("tolower", 2))["contents"]["value"]
    help_ = client.result("textDocument/signatureHelp", **at("tolower(", 8))
    assert "tolower" in help_["signatures"][0]["label"], help_
    places = client.result("textDocument/definition", **at("helper;", 1))
    assert [place["uri"] for place in places] == [part], places
    places = client.result("textDocument/references", **at("helper;", 1), context={"includeDeclaration": True})
    found = {place["uri"]: place["range"]["start"] for place in places}
    assert found == {part: {"line": 0, "character": 4}, main: position(MAIN, "helper;")}, found
    changes = client.result("textDocument/rename", **at("helper;", 1), newName="cleaner")["changes"]
    assert set(changes) == {main, part}, changes
    for wrong in ["vcl_recv", "1x", "a b", "if", "web"]:
        assert "error" in client.ask("textDocument/rename", **at("helper;", 1), newName=wrong), wrong
    names = [one["name"] for one in client.result("textDocument/documentSymbol", textDocument=document)]
    assert names == ["web", "vcl_recv"], names
    labels = [one["label"] for one in client.result("textDocument/completion", **at("req.htp", 5))]
    assert "req.http.*" in labels and "beresp.ttl" not in labels, labels
    data = client.result("textDocument/semanticTokens/full", textDocument=document)["data"]
    assert len(data) % 5 == 0 and data[:5] == [0, 0, 3, 3, 0], data
    edits = client.result("textDocument/formatting", textDocument=document, options={})
    assert all("{ .host" not in edit["newText"] or "backend web" in edit["newText"] for edit in edits)
    # A change of a range after characters outside the BMP.
    start = position(MAIN, "req.htp")
    end = {"line": start["line"], "character": start["character"] + 7}
    client.notify(
        "textDocument/didChange",
        textDocument={"uri": main, "version": 3},
        contentChanges=[{"range": {"start": start, "end": end}, "text": "req.http.Z"}],
    )
    messages = client.diagnostics(main)
    assert not any(one["severity"] == 1 and one["code"][0] == "V" for one in messages), messages
    client.stop()


def fixes():
    client = Client()
    client.start()
    uri = "untitled:old"
    text = "vcl 4.1;\nbackend b none;\nsub vcl_recv { if (req.url ~ \"^/x$\") { return (pass); } set req.ur = \"/\"; }\n"
    client.open(uri, text)
    messages = client.diagnostics(uri)
    actions = client.result("textDocument/codeAction", textDocument={"uri": uri}, range=messages[0]["range"], context={})
    assert any(uri in action["edit"]["changes"] for action in actions), (messages, actions)
    old = "backend b { .host = \"127.0.0.1\"; }\nsub vcl_fetch { return (deliver); }\n"
    client.notify("textDocument/didChange", textDocument={"uri": uri}, contentChanges=[{"text": old}])
    messages = client.diagnostics(uri)
    assert not any(one["severity"] == 1 and one["code"][0] == "V" for one in messages), messages
    client.stop()


def hostile():
    client = Client()
    client.raw(b"Content-Length: 2\r\n\r\n{}")
    assert "error" in client.ask("textDocument/hover")
    client.start()
    client.open(main, MAIN)
    huge = 100_000_000
    wide = {"start": {"line": 2**60, "character": 2**60}, "end": {"line": 0, "character": 0}}
    wrong = {"start": {"line": -1, "character": "x"}, "end": None}
    for round_ in range(25):
        client.raw(b"Content-Length: 5\r\n\r\n{\"jsonrpc\":\"2.0\"}")
        client.raw(b"Content-Length: -1\r\n\r\n")
        client.raw(b"X" * 5000 + b"\r\n\r\n")
        client.raw(b"Content-Length: 4\r\n\r\n\xff\xfe\"\x00")
        deep = b"[" * 100_000
        client.raw(b"Content-Length: %d\r\n\r\n" % len(deep) + deep)
        for number in range(20):
            client.notify("$/cancelRequest", id=number)
        client.notify("textDocument/didChange", textDocument={"uri": main}, contentChanges=[{"range": wide, "text": "("}])
        client.notify("textDocument/didChange", textDocument={"uri": main}, contentChanges=[{"range": wrong, "text": "x"}])
        client.notify("textDocument/didChange", textDocument={"uri": "file:///etc/passwd"}, contentChanges=7)
        client.open("file:///x%" + str(round_), "sub x {" * 2000)
        client.notify("textDocument/didClose", textDocument={"uri": "file:///x%" + str(round_)})
        assert client.ask("no/method")["error"]["code"] == -32601
        assert client.result("textDocument/definition", textDocument={"uri": "file:///etc/passwd"}, position=wide["start"]) == []
        client.result("textDocument/hover", textDocument={"uri": 5}, position="x")
    client.raw(b"Content-Length: %d\r\n\r\n" % huge)
    for _ in range(100):
        client.raw(b" " * (huge // 100))
    assert client.ask("no/method")["error"]["code"] == -32601
    with open(f"/proc/{client.server.pid}/status") as status:
        peak = next(int(line.split()[1]) for line in status if line.startswith("VmHWM"))
    assert peak < 150_000, f"{peak} KiB"
    client.stop()


def speed():
    client = Client()
    client.start()
    subs = "".join(
        f"sub s{n} {{\n    if (req.url ~ \"^/a{n}\") {{\n        set req.http.X{n} = req.url;\n    }}\n}}\n" for n in range(400)
    )
    calls = "".join(f"    call s{n};\n" for n in range(400))
    text = f"vcl 4.1;\nbackend b none;\n{subs}sub vcl_recv {{\n{calls}}}\n"
    client.open("untitled:long", text)
    started = time.monotonic()
    client.diagnostics("untitled:long")
    # Less the time that the server waits for the client to be quiet.
    print(f"diagnostics of {text.count(chr(10))} lines: {(time.monotonic() - started - 0.2) * 1000:.0f} ms")
    client.stop()


os.chdir("/")
features()
fixes()
hostile()
speed()
print("done")
