"""Look-ups in a large table of buckets, by instructions that numba does not offer.

:func:`fetch` prefetches a bucket that will be read soon, so that the caches load many at a time;
:func:`search` compares all slots of a bucket at once. Written in Python, both together took three
times as long as everything else in the language model.
"""

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

WAYS = 16
"""Slots of a bucket: one cache line, so that a look-up costs at most one miss."""
TAG_BITS = 16
"""Upper bits of a slot, which a search compares."""

_INT, _BYTE = ir.IntType(32), ir.IntType(8).as_pointer()
_SLOTS = ir.VectorType(_INT, WAYS)


@intrinsic
def fetch(typing, slots, start):
    """Prefetches the cache line of slots[start] without waiting for it."""

    def write(context, builder, signature, arguments):
        address = builder.bitcast(_place(context, builder, signature, arguments), _BYTE)
        to_read, keep, data = _INT(0), _INT(3), _INT(1)
        kind = ir.FunctionType(ir.VoidType(), [_BYTE, _INT, _INT, _INT])
        function = cgutils.get_or_insert_function(builder.module, kind, "llvm.prefetch.p0")
        builder.call(function, [address, to_read, keep, data])
        return context.get_dummy_value()

    return types.void(slots, start), write


@intrinsic
def search(typing, slots, start, tag):
    """Returns the lower bits of the slot whose upper bits are tag's, among WAYS from start; else 0.

    slots: uint32. start: of an unsigned type, because no slot precedes the first. tag: uint32.
    """

    def write(context, builder, signature, arguments):
        address = _place(context, builder, signature, arguments)
        bucket = builder.load(builder.bitcast(address, _SLOTS.as_pointer()), align=4)
        rest = builder.xor(bucket, _same(builder, arguments[2]))
        below = builder.icmp_unsigned("<", rest, _SLOTS([1 << TAG_BITS] * WAYS))
        rest = builder.select(below, rest, _SLOTS([0] * WAYS))
        kind = ir.FunctionType(_INT, [_SLOTS])
        name = f"llvm.vector.reduce.or.v{WAYS}i32"
        return builder.call(cgutils.get_or_insert_function(builder.module, kind, name), [rest])

    return types.uint32(slots, start, types.uint32), write


def _place(context, builder, signature, arguments):
    """Returns the address of slots[start]."""
    slots = context.make_array(signature.args[0])(context, builder, arguments[0])
    return builder.gep(slots.data, [arguments[1]])


def _same(builder, value):
    """Returns a vector of one value."""
    none = ir.Constant(_SLOTS, ir.Undefined)
    first = builder.insert_element(none, value, _INT(0))
    return builder.shuffle_vector(first, none, _SLOTS([0] * WAYS))
