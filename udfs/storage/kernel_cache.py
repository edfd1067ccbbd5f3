"""How numba names the kernels that it keeps: by module, not by where the package lies.

Spark unpacks an archive into a new folder for each application; by path, every job would compile
again. What a kernel is made of decides the folder (gaixie.udfs.storage.cache): its file's time says
nothing.
"""

from __future__ import annotations

from pathlib import Path

from numba.core.caching import UserProvidedCacheLocator

HERE = Path(__file__).parents[1]


class ByModule(UserProvidedCacheLocator):
    """numba loads this class by its name, from NUMBA_CACHE_LOCATOR_CLASSES."""

    @classmethod
    def get_suitable_cache_subpath(cls, py_file: str) -> str:
        """The folder below the cache: the module's package, for a file of ours."""
        folder = Path(py_file).parent
        if not folder.is_relative_to(HERE):
            return super().get_suitable_cache_subpath(py_file)
        return ".".join(folder.relative_to(HERE.parent).parts)

    def get_source_stamp(self) -> object:
        """What has to be equal for a kept kernel to be used."""
        if not Path(self._py_file).is_relative_to(HERE):
            return super().get_source_stamp()
        return "the cache folder's name"
