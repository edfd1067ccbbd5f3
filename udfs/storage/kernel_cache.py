"""Makes numba name cached kernels by module, not by the path of the package.

Spark unpacks an archive into a new folder for each application, so with paths every job would
compile again. The source decides the cache folder (gaixie.udfs.storage.cache), so file times do not
matter.
"""

from pathlib import Path

from numba.core.caching import UserProvidedCacheLocator

HERE = Path(__file__).parents[1]


class ByModule(UserProvidedCacheLocator):
    """numba loads this class by its name, from NUMBA_CACHE_LOCATOR_CLASSES."""

    @classmethod
    def get_suitable_cache_subpath(cls, py_file: str) -> str:
        """Returns the folder below the cache: for a file of gaixie, the module's package."""
        folder = Path(py_file).parent
        if not folder.is_relative_to(HERE):
            return super().get_suitable_cache_subpath(py_file)
        return ".".join(folder.relative_to(HERE.parent).parts)

    def get_source_stamp(self) -> object:
        """Returns what must be equal to reuse a cached kernel."""
        if not Path(self._py_file).is_relative_to(HERE):
            return super().get_source_stamp()
        return "the cache folder's name"
