#!/usr/bin/env python3
"""A hub for one model folder: hub.py FOLDER PORTFILE.  /api/models/ORG/NAME/tree/REV and /ORG/NAME/resolve/REV/FILE, with ranges."""
import hashlib, http.server, json, os, sys

folder = sys.argv[1]


class Hub(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        parts = self.path.split("?")[0].strip("/").split("/")
        if parts[:2] == ["api", "models"] and parts[2] == "org":
            files = [{"type": "file", "path": n, "size": os.path.getsize(folder + "/" + n),
                      **({"lfs": {"oid": hashlib.sha256(open(folder + "/" + n, "rb").read()).hexdigest()}} if n.endswith("safetensors") else {})}
                     for n in sorted(os.listdir(folder))] + [{"type": "file", "path": "../evil.json", "size": 1}]
            self.reply(200, json.dumps(files).encode())
        elif len(parts) == 5 and parts[2] == "resolve" and os.path.exists(folder + "/" + parts[4]):
            data = open(folder + "/" + parts[4], "rb").read()
            start = int(self.headers.get("Range", "bytes=0-").split("=")[1].split("-")[0])
            self.reply(206 if start else 200, data[start:], f"bytes {start}-{len(data) - 1}/{len(data)}" if start else None)
        else:
            self.reply(404, b"")

    def reply(self, code, body, content_range=None):
        self.send_response(code)
        if content_range:
            self.send_header("Content-Range", content_range)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, fmt, *args):
        print(self.headers.get("Authorization"), self.headers.get("Range"), fmt % args, flush=True)


server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Hub)
open(sys.argv[2], "w").write(str(server.server_address[1]))
server.serve_forever()
