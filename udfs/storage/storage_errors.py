"""Makes the errors of udfs/storage/storage.py: one-line OSErrors that name the URI and the fix.

They are FileNotFoundError, FileExistsError, PermissionError (credentials or rights),
ConnectionError (nothing answers), or OSError itself.
"""

from collections.abc import Iterator
from contextlib import contextmanager

CREDENTIALS = "AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or the profile or role in use"

IS_THERE = "is already there"

UNKNOWN = (
    *("InvalidAccessKeyId", "SignatureDoesNotMatch", "ExpiredToken", "InvalidToken"),
    *("InvalidClientTokenId", "AuthorizationHeaderMalformed", "RequestTimeTooSkewed"),
)
DENIED = ("AccessDenied", "AllAccessDisabled", "Forbidden", "403")

ANSWERS: dict[tuple[str, ...], tuple[type[OSError], str]] = {
    ("NoSuchBucket",): (FileNotFoundError, "no such bucket; create it, or fix the name"),
    ("NoSuchKey", "NotFound", "404"): (FileNotFoundError, "no such object"),
    ("PreconditionFailed", "ConditionalRequestConflict", "412"): (FileExistsError, IS_THERE),
    UNKNOWN: (PermissionError, f"the store does not accept the credentials; check {CREDENTIALS}"),
    DENIED: (PermissionError, "access denied; check the credentials, and what they may do there"),
}
"""What the codes of S3's answers mean."""


@contextmanager
def explained(uri: str, local: bool = True) -> Iterator[None]:
    """Turns errors of s3fs and the file system into one line that names the URI.

    local: also handle the file system's errors, which in a caller's block may concern other files.
    """
    try:
        yield
    except Exception as error:
        cause = error.__cause__ if isinstance(error, OSError) and error.__cause__ else error
        package = type(cause).__module__.partition(".")[0]
        if package in ("botocore", "aiobotocore", "aiohttp", "urllib3"):
            raise _store_error(uri, cause) from None
        if local and isinstance(error, OSError) and not str(error).startswith(f"{uri}: "):
            words = {FileNotFoundError: "no such file or folder", FileExistsError: IS_THERE}
            said = words.get(type(error)) or error.strerror or str(error)
            raise type(error)(f"{uri}: {said.splitlines()[0]}") from None
        raise


def _store_error(uri: str, error: BaseException) -> OSError:
    from botocore import exceptions as boto

    said = (str(error).splitlines() or [""])[0]
    if isinstance(error, boto.ClientError):
        answer = error.response.get("Error", {})
        code = str(answer.get("Code", ""))
        for codes, (kind, meaning) in ANSWERS.items():
            if code in codes:
                told = f" ({code}, {error.operation_name})" if kind is PermissionError else ""
                return kind(f"{uri}: {meaning}{told}")
        return OSError(f"{uri}: {code}: {(answer.get('Message', '').splitlines() or [said])[0]}")
    missing = boto.NoCredentialsError, boto.PartialCredentialsError, boto.CredentialRetrievalError
    if isinstance(error, (*missing, boto.ProfileNotFound, boto.SSOError)):
        return PermissionError(f"{uri}: no credentials ({said}); check {CREDENTIALS}")
    broken_off = type(error).__module__.startswith(("aiohttp", "urllib3"))
    if broken_off or isinstance(error, boto.ConnectionError | boto.HTTPClientError):
        fix = "check AWS_ENDPOINT_URL_S3 and the network"
        return ConnectionError(f"{uri}: the store cannot be reached ({said}); {fix}")
    return OSError(f"{uri}: {said}")
