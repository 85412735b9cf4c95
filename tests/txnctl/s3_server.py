"""A local S3 server, in a process of its own: `localbucket`, with what PyArrow asks for and that server leaves out.

    python -m tests.txnctl.s3_server DIRECTORY    prints its port

Added are objects whose name ends with a slash, by which PyArrow marks a directory; the removal of many objects in one
request; and the refusal of requests that are not signed with the key of the tests.
"""

from __future__ import annotations

import os
import subprocess
import sys
import xml.etree.ElementTree as ET
from http import HTTPStatus
from http.server import ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import quote

import localbucket

from tests.waiting import wait_for

ROOT = Path(__file__).parents[2]
KEY, SECRET = "BANKKEY", "bank/secret"
BUCKET = "bank"
HOLD = "hold"
"""While a file of this name lies beside the bucket, no object is copied."""

_MARKER = ".directory"


class Handler(localbucket.S3Handler):  # type: ignore[misc]
    """The server's own handler, and the three additions."""

    def log_message(self, format: str, *args: Any) -> None:
        """Say nothing."""

    def _copy_object(self, bucket: str, key: str) -> None:
        wait_for(lambda: not (self.data_root / HOLD).exists(), "the hold is over", 600)
        super()._copy_object(bucket, key)

    def _dispatch(self, action: Any) -> None:
        if f"Credential={KEY}/" not in self.headers.get("Authorization", ""):
            self._read_body()
            self._send_error(localbucket.S3Error(HTTPStatus.FORBIDDEN, "InvalidAccessKeyId", "No such key."))
            return
        super()._dispatch(action)

    def _object_path(self, bucket: str, key: str) -> Path:
        path: Path = super()._object_path(bucket, f"{key}{_MARKER}" if key.endswith("/") else key)
        return path

    def _list_entries(self, *args: Any) -> Any:
        contents, *rest = super()._list_entries(*args)
        listed = [
            (key.removesuffix(_MARKER) if key.endswith(f"/{_MARKER}") else key, path)
            for key, path in contents
        ]
        return listed, *rest

    def _post_request(self, bucket: str, key: str) -> None:
        if key or "delete" not in self.query:
            super()._post_request(bucket, key)
            return
        names = [name.text or "" for name in ET.fromstring(self._read_body()).findall("{*}Object/{*}Key")]
        for name in names:
            self._object_path(bucket, name).unlink(missing_ok=True)
        result = ET.Element("DeleteResult", xmlns=localbucket.S3_NAMESPACE)
        for name in names:
            localbucket.sub_element(ET.SubElement(result, "Deleted"), "Key", name)
        self._send_xml(result)


class S3Server:
    """A running server with one bucket.

    Attributes:
        bucket: the directory that holds the objects of the bucket.
        environment: the variables by which a client reaches the server.
    """

    def __init__(self, directory: Path) -> None:
        self.bucket = directory / BUCKET
        self.bucket.mkdir(parents=True)
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.txnctl.s3_server", str(directory)],
            cwd=ROOT, stdout=subprocess.PIPE, text=True,
        )  # fmt: skip
        assert self._process.stdout is not None
        port = self._process.stdout.readline().strip()
        self._endpoint = f"127.0.0.1:{port}"
        self.environment = {
            "AWS_ACCESS_KEY_ID": KEY,
            "AWS_SECRET_ACCESS_KEY": SECRET,
            "AWS_REGION": "us-east-1",
            "AWS_ENDPOINT_URL": f"http://{self._endpoint}",
            "AWS_EC2_METADATA_DISABLED": "true",
        }

    def uri(self, directory: str, scheme: str = "s3", secret: str = SECRET) -> str:
        """The URI of a directory, with all that a client needs as parameters."""
        given = f"region=us-east-1&scheme=http&endpoint_override={self._endpoint}"
        return f"{scheme}://{KEY}:{quote(secret, safe='')}@{BUCKET}/{directory}?{given}"

    @property
    def hold(self) -> Path:
        """The file that holds copies back while it is there."""
        return self.bucket.parent / HOLD

    def names(self, directory: str) -> list[str]:
        """The objects below a directory of the bucket, by their names, without the marks of directories."""
        root = self.bucket / directory
        files = (path for path in root.rglob("*") if path.is_file() and path.name != _MARKER)
        return sorted(str(path.relative_to(root)) for path in files)

    def close(self) -> None:
        """End the server."""
        self._process.kill()
        self._process.wait()
        assert self._process.stdout is not None
        self._process.stdout.close()


def main(directory: str) -> None:
    """Serve a directory of buckets until killed."""
    Handler.data_root = Path(directory)
    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        print(server.server_address[1], flush=True)
        sys.stdout.close()
        os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
        server.serve_forever()


if __name__ == "__main__":
    main(sys.argv[1])
