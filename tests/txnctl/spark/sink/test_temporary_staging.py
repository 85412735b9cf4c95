"""The directory for staged files of a store on a server."""

from __future__ import annotations

from pathlib import Path

import pytest

from storage.errors import NotPermitted
from txnctl.spark.sink import temporary_staging


def test_the_temporary_directory_is_for_this_user_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is made with mode 0700, used again, and refused where others may write or a link lies in its place."""
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    path = Path(temporary_staging.make_temporary_staging())
    assert path.stat().st_mode & 0o777 == 0o700
    assert temporary_staging.make_temporary_staging() == str(path)
    path.chmod(0o770)
    with pytest.raises(NotPermitted, match="this user alone"):
        temporary_staging.make_temporary_staging()
    path.rmdir()
    path.symlink_to(tmp_path)
    with pytest.raises(NotPermitted, match="this user alone"):
        temporary_staging.make_temporary_staging()
