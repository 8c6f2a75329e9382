"""Installs packages into PACKAGES_DIR, for the container that follows.

Without LOCK it first looks for wheels of REQUIREMENTS and of all that they need, and writes to TERMINATION_LOG which
they are: a line "NAME==VERSION SHA256" of each, the digest in base64. LOCK has such lines. It needs Python 3.9 and pip
22.2. The last line on the standard error says what is wrong.
"""

import base64
import json
import os
import subprocess
import sys
import tempfile
import urllib.parse

MOST_BYTES = 4000  # a termination message has 4,096


def fail(why):
    print(why, file=sys.stderr, flush=True)
    sys.exit(1)


def index_of(environ):
    """Returns the address of the index with its user name and password, or None for pip's own."""
    url = environ.get("INDEX_URL")
    if not url:
        return None
    username, password = environ.get("INDEX_USERNAME", ""), environ.get("INDEX_PASSWORD", "")
    if not username and not password:
        return url
    parts = urllib.parse.urlsplit(url)
    user = urllib.parse.quote(username, safe="") + ":" + urllib.parse.quote(password, safe="")
    return urllib.parse.urlunsplit(parts._replace(netloc=user + "@" + parts.netloc))


def pip(what, *arguments):
    """Runs pip install, and ends with pip's own error if it fails."""
    environ = dict(os.environ)
    index = index_of(environ)
    if index:
        environ["PIP_INDEX_URL"] = index  # and not an argument, which others could read
        address = urllib.parse.urlsplit(environ["INDEX_URL"])
        if address.scheme == "http":  # pip ignores such an index unless it is told to trust it
            environ["PIP_TRUSTED_HOST"] = address.netloc
    if environ.get("INDEX_CA"):
        environ["PIP_CERT"] = environ["INDEX_CA"]
    command = [sys.executable, "-m", "pip", "--no-input", "--disable-pip-version-check", "--no-cache-dir", "install",
               "--only-binary", ":all:", "--quiet", *arguments]
    done = subprocess.run(command, env=environ, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    sys.stderr.write(done.stderr)
    if done.returncode:
        errors = [line[len("ERROR: "):] for line in done.stderr.splitlines() if line.startswith("ERROR: ")]
        fail(what + ": " + (" ".join(errors) or (done.stderr.strip().splitlines() or ["pip says nothing"])[-1]))


def resolve(requirements, directory):
    """Returns the lines of the wheels of requirements and of all that they need."""
    report = os.path.join(directory, "report.json")
    pip("looking for execution.requirements", "--dry-run", "--ignore-installed", "--report", report, *requirements)
    with open(report, encoding="utf-8") as file:
        found = json.load(file)["install"]
    lines = []
    for wheel in found:
        archive = wheel["download_info"].get("archive_info", {})
        digest = archive.get("hashes", {}).get("sha256") or archive.get("hash", "").partition("sha256=")[2]
        name = wheel["metadata"]["name"] + "==" + wheel["metadata"]["version"]
        if len(digest) != 64:
            fail("looking for execution.requirements: the index gives no SHA-256 of " + name)
        lines.append(name + " " + base64.b64encode(bytes.fromhex(digest)).decode())
    return sorted(lines)


def install(lines, directory):
    name = os.path.join(directory, "requirements.txt")
    with open(name, "w", encoding="utf-8") as file:
        for line in lines:
            package, digest = line.split(" ")
            file.write(package + " --hash=sha256:" + base64.b64decode(digest).hex() + "\n")
    pip("installing execution.requirements", "--require-hashes", "--no-deps", "--no-compile", "--target",
        os.environ["PACKAGES_DIR"], "--requirement", name)


def main():
    try:
        import pip as _  # noqa: F401
    except ImportError:
        fail("the image has no pip, which installs execution.requirements: name an image with pip, or one that has the "
             "packages")
    with tempfile.TemporaryDirectory() as directory:
        lines = os.environ.get("LOCK", "").splitlines()
        if not lines:
            lines = resolve(os.environ["REQUIREMENTS"].splitlines(), directory)
            text = "\n".join(lines)
            if len(text) > MOST_BYTES or len(lines) > 64:
                fail("execution.requirements need %d packages, more than can be pinned: put them into an image, and name it "
                     "as execution.image" % len(lines))
            install(lines, directory)
            with open(os.environ["TERMINATION_LOG"], "w", encoding="utf-8") as file:
                file.write(text)
        else:
            install(lines, directory)


main()
