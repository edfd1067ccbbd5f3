"""Makes the errors of udfs/storage/storage.py: one-line OSErrors that name the URI and the fix.

They are FileNotFoundError, FileExistsError, PermissionError (credentials or rights),
ConnectionError (nothing answers), or OSError itself.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

WRONG_CREDENTIALS = {
    "InvalidAccessKeyId",
    "SignatureDoesNotMatch",
    "ExpiredToken",
    "InvalidToken",
    "InvalidClientTokenId",
    "AuthorizationHeaderMalformed",
    "RequestTimeTooSkewed",
}


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
        if package in ("botocore", "aiobotocore", "aiohttp"):
            raise _store_error(uri, cause) from None
        if package in ("azure", "gcsfs", "google"):  # errors of other stores
            kind = (
                type(error) if isinstance(error, FileNotFoundError | FileExistsError) else OSError
            )
            raise kind(f"{uri}: {str(cause).splitlines()[0]}") from None
        ours = str(error).startswith(f"{uri}: ")
        if local and isinstance(error, OSError) and not ours:
            raise _file_error(uri, error) from None
        raise


def refused(uri: str, error: dict[str, Any], operation: str) -> OSError:
    """Returns the exception for one of the errors in the answer to a bulk request."""
    from botocore.exceptions import ClientError

    return _store_error(uri, ClientError({"Error": error}, operation))


def _file_error(uri: str, error: OSError) -> OSError:
    if isinstance(error, FileNotFoundError):
        return FileNotFoundError(f"{uri}: no such file or folder")
    if isinstance(error, FileExistsError):
        return FileExistsError(f"{uri}: is already there")
    return type(error)(f"{uri}: {(error.strerror or str(error)).splitlines()[0]}")


def _store_error(uri: str, error: BaseException) -> OSError:
    from botocore import exceptions as boto

    first_line = (str(error).splitlines() or [""])[0]
    if isinstance(error, boto.ClientError):
        details = error.response.get("Error", {})
        code, message = str(details.get("Code", "")), details.get("Message", "")
        if code == "NoSuchBucket":
            return FileNotFoundError(f"{uri}: no such bucket; create it, or fix the name")
        if code in ("NoSuchKey", "NoSuchUpload", "NotFound", "404"):
            return FileNotFoundError(f"{uri}: no such object")
        if code in ("PreconditionFailed", "ConditionalRequestConflict", "412"):
            return FileExistsError(f"{uri}: is already there")
        if code in WRONG_CREDENTIALS:
            return PermissionError(
                f"{uri}: the store does not accept the credentials ({code}); check "
                "AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or the profile or role in use"
            )
        if code in ("AccessDenied", "AllAccessDisabled", "Forbidden", "403"):
            return PermissionError(
                f"{uri}: access denied ({error.operation_name}); check the credentials in use "
                "and what they may do there"
            )
        return OSError(f"{uri}: {code}: {(message.splitlines() or [first_line])[0]}")
    credentials = (
        boto.NoCredentialsError,
        boto.PartialCredentialsError,
        boto.CredentialRetrievalError,
    )
    if isinstance(error, (*credentials, boto.ProfileNotFound, boto.SSOError)):
        return PermissionError(
            f"{uri}: no credentials ({first_line}); set AWS_ACCESS_KEY_ID and "
            "AWS_SECRET_ACCESS_KEY, AWS_PROFILE, or run under a role"
        )
    broken_off = type(error).__module__.startswith("aiohttp")
    if broken_off or isinstance(error, boto.ConnectionError | boto.HTTPClientError):
        return ConnectionError(
            f"{uri}: the store cannot be reached ({first_line}); check AWS_ENDPOINT_URL_S3 "
            "and the network"
        )
    return OSError(f"{uri}: {first_line}")
