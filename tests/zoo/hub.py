"""A hub on this machine: as much of the API of the Hugging Face Hub as RL Zoo's push_to_hub and load_from_hub use."""

import base64
import hashlib
import json
import re
import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import unquote, urlsplit


class Hub(ThreadingHTTPServer):
    """Repositories in memory. All files go into commits as they are, without the storage for large files."""

    daemon_threads = True

    def __init__(self):
        super().__init__(("127.0.0.1", 0), HubHandler)
        #: Content of files by path, of each repository
        self.repos = {}

    @property
    def url(self):
        return f"http://127.0.0.1:{self.server_port}"

    def revision(self, repo):
        """Name the state of a repository as git names commits."""
        return hashlib.sha1(repr(sorted(self.repos[repo].items())).encode()).hexdigest()


@contextmanager
def running_hub():
    """Serve until the end of the block."""
    hub = Hub()
    thread = threading.Thread(target=hub.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
    thread.start()
    try:
        yield hub
    finally:
        hub.shutdown()
        hub.server_close()
        thread.join()


class HubHandler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *arguments):
        pass

    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        path = unquote(urlsplit(self.path).path)
        if path == "/api/repos/create":
            asked = json.loads(body)
            repo = f"{asked['organization']}/{asked['name']}"
            self.server.repos.setdefault(repo, {})
            return self.answer({"url": f"{self.server.url}/{repo}"})
        if path == "/api/validate-yaml":
            return self.answer({"errors": [], "warnings": []})
        repo, action = re.fullmatch(r"/api/models/([^/]+/[^/]+)/(preupload|commit)/main", path).groups()
        if action == "preupload":
            files = [
                {"path": file["path"], "uploadMode": "regular", "shouldIgnore": False} for file in json.loads(body)["files"]
            ]
            return self.answer({"files": files})
        for line in body.splitlines():
            entry = json.loads(line)
            if entry["key"] == "file":
                self.server.repos[repo][entry["value"]["path"]] = base64.b64decode(entry["value"]["content"])
        return self.answer({"commitUrl": f"{self.server.url}/{repo}/commit/1", "commitOid": self.server.revision(repo)})

    def do_GET(self):
        path = unquote(urlsplit(self.path).path)
        file = re.fullmatch(r"/([^/]+/[^/]+)/resolve/[^/]+/(.+)", path)
        if file is not None:
            return self.send_file(*file.groups())
        listed = re.fullmatch(r"/api/models/([^/]+/[^/]+)/(revision|tree)/[^/]+", path)
        if listed is None:
            return self.answer({"error": "not found"}, 404)
        repo, what = listed.groups()
        if repo not in self.server.repos:
            return self.answer({"error": "Repository not found"}, 404, {"X-Error-Code": "RepoNotFound"})
        if what == "revision":
            siblings = [{"rfilename": name} for name in self.server.repos[repo]]
            return self.answer({"id": repo, "sha": self.server.revision(repo), "siblings": siblings})
        files = self.server.repos[repo].items()
        return self.answer(
            [{"type": "file", "path": name, "size": len(content), "oid": hash_of(content)} for name, content in files]
        )

    do_HEAD = do_GET

    def send_file(self, repo, name):
        files = self.server.repos.get(repo)
        if files is None or name not in files:
            code = "RepoNotFound" if files is None else "EntryNotFound"
            return self.answer({"error": "not found"}, 404, {"X-Error-Code": code})
        headers = {"ETag": f'"{hash_of(files[name])}"', "X-Repo-Commit": self.server.revision(repo)}
        return self.send(files[name], 200, headers)

    def answer(self, value, status=200, headers=None):
        self.send(json.dumps(value).encode(), status, {"Content-Type": "application/json", **(headers or {})})

    def send(self, content, status, headers):
        self.send_response(status)
        for name, value in {**headers, "Content-Length": len(content)}.items():
            self.send_header(name, str(value))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(content)


def hash_of(content):
    return hashlib.sha1(content).hexdigest()
