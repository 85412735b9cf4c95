"""Write, or check, every generated file of the checkout."""

from __future__ import annotations

import sys
from pathlib import Path

from txnctl import __version__
from txnctl.cli.complete import SCRIPTS, script
from txnctl.generate.man import man_page
from txnctl.generate.markdown import cli_page
from txnctl.generate.tree import pages

HAND_WRITTEN = Path(__file__).parent / "pages"
"""Hand-written pages in roff, with `@VERSION@` for the version, copied to man/."""


def generated_files() -> dict[str, str]:
    """Return the text of every generated file, by path in the checkout."""
    every = list(pages())
    generated = {f"man/{page.file_name}.1": man_page(page, every) for page in every}
    for template in sorted(HAND_WRITTEN.glob("*.[1-8]")):
        generated[f"man/{template.name}"] = template.read_text("utf-8").replace("@VERSION@", __version__)
    generated["docs/CLI.md"] = cli_page(every)
    generated |= {f"completions/{name}": script(shell) for shell, name in SCRIPTS.items()}
    return generated


def stale_files(checkout: Path) -> list[str]:
    """Return files that differ from the generated text, and pages of removed commands."""
    generated = generated_files()
    different = [name for name, text in generated.items() if _committed(checkout / name) != text]
    orphans = [
        f"man/{path.name}"
        for path in (checkout / "man").glob("*.[1-8]")
        if f"man/{path.name}" not in generated
    ]
    return sorted(different + orphans)


def write_stale_files(checkout: Path) -> list[str]:
    """Write files that differ and remove pages of removed commands; return the names of both."""
    changed = stale_files(checkout)
    generated = generated_files()
    for name in changed:
        path = checkout / name
        if name in generated:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(generated[name], "utf-8")
        else:
            path.unlink()
    return changed


def _committed(path: Path) -> str | None:
    return path.read_text("utf-8") if path.exists() else None


def main(arguments: list[str]) -> int:
    """`python -m txnctl.generate [--check]`."""
    checkout = Path(__file__).parents[2]
    if not (checkout / "pyproject.toml").exists():
        print("Not a checkout: the generated files belong beside pyproject.toml.", file=sys.stderr)
        return 2
    if arguments not in ([], ["--check"]):
        print("usage: python -m txnctl.generate [--check]", file=sys.stderr)
        return 2
    if not arguments:
        for name in write_stale_files(checkout):
            print(f"wrote {name}" if (checkout / name).exists() else f"removed {name}")
        return 0
    different = stale_files(checkout)
    for name in different:
        print(f"stale: {name} (make generate)", file=sys.stderr)
    return 1 if different else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
