//! What memcached would not start with, or would be killed in.

pub mod argument;

use super::Rule;

const SERVER: &str = "spec.memcached";

/// Items and the least that comes on top fit into the memory limit.
pub const MEMORY_LIMIT: Rule = Rule::invalid(
    "spec",
    ".resources.limits.memory",
    "!has(self.resources) || !has(self.resources.limits) || !('memory' in self.resources.limits) \
     || (isQuantity(string(self.resources.limits['memory'])) \
         && quantity(string(self.resources.limits['memory'])).compareTo(quantity('32Mi') \
            .add((has(self.memcached) ? self.memcached.maxMemoryMB : 64) * 1048576)) >= 0)",
    "less than memcached.maxMemoryMB %d needs: give at least %dMi, or lower maxMemoryMB",
)
.with(&[
    "(has(self.memcached) ? self.memcached.maxMemoryMB : 64)",
    "((has(self.memcached) ? self.memcached.maxMemoryMB : 64) + 32)",
]);

/// memcached keeps file descriptors for each thread, and exits if the rest is too few.
pub const CONNECTIONS: Rule = Rule::invalid(
    SERVER,
    ".maxConnections",
    "self.maxConnections >= 5 * self.threads + 32",
    "%d is too few for %d threads: memcached would not start; give at least %d",
)
.with(&["self.maxConnections", "self.threads", "(5 * self.threads + 32)"]);

/// Items are made of whole slab chunks; another size ends the server at start. Who sets the size of chunks is left
/// to the operator: CEL cannot read arguments that well.
pub const ITEM_SIZE: Rule = Rule::invalid(
    SERVER,
    ".maxItemSize",
    "!self.maxItemSize.matches('^[0-9]{1,11}[km]$') \
     || (has(self.extraArgs) && self.extraArgs.exists(a, a.contains('slab_chunk_max'))) \
     || (!self.maxItemSize.matches('^0+[km]$') \
         && (self.maxItemSize.endsWith('m') || int(self.maxItemSize.substring(0, size(self.maxItemSize) - 1)) % 512 == 0))",
    "memcached would not start: give a multiple of 512k, for example 512k or 1m",
);

/// An item takes no more than half of the memory.
pub const ITEM_IN_MEMORY: Rule = Rule::invalid(
    SERVER,
    ".maxItemSize",
    "!self.maxItemSize.matches('^[0-9]{1,11}[km]$') \
     || int(self.maxItemSize.substring(0, size(self.maxItemSize) - 1)) \
        * (self.maxItemSize.endsWith('m') ? 1024 : 1) <= self.maxMemoryMB * 512",
    "more than half of maxMemoryMB %d: memcached would not start; give at most %dk",
)
.with(&["self.maxMemoryMB", "(self.maxMemoryMB * 512)"]);

/// Nor more than memcached allows.
pub const ITEM_AT_MOST: Rule = Rule::invalid(
    SERVER,
    ".maxItemSize",
    "!self.maxItemSize.matches('^[0-9]{1,11}[km]$') \
     || int(self.maxItemSize.substring(0, size(self.maxItemSize) - 1)) \
        * (self.maxItemSize.endsWith('m') ? 1024 : 1) <= 1048576",
    "more than memcached allows: give at most 1024m",
);

/// Items fit into the write buffer of the disk tier.
pub const ITEM_ON_DISK: Rule = Rule::invalid(
    "spec",
    ".memcached.maxItemSize",
    "!has(self.extstore) || !has(self.memcached) || !self.memcached.maxItemSize.matches('^[0-9]{1,11}[km]$') \
     || int(self.memcached.maxItemSize.substring(0, size(self.memcached.maxItemSize) - 1)) \
        * (self.memcached.maxItemSize.endsWith('m') ? 1024 : 1) <= 4096",
    "does not go with spec.extstore: give at most 4m",
);

/// One page of the disk tier: less is none, and ends the server.
pub const DISK: Rule = Rule::invalid(
    "spec.extstore",
    ".size",
    "isQuantity(string(self.size)) && quantity(string(self.size)).compareTo(quantity('64Mi')) >= 0",
    "too small a disk: give at least 64Mi",
);

/// Arguments do not fight the operator.
pub const ARGUMENTS: Rule = Rule::invalid(
    SERVER,
    ".extraArgs",
    "!has(self.extraArgs) || !self.extraArgs.join('\\n').matches('{arguments}')",
    "ports, listeners and what has a field of its own are decided by the operator: remove the argument, or use the \
     field",
)
.forbidden();

/// Arguments are told apart by line breaks.
pub const ARGUMENT_LINES: Rule = Rule::invalid(
    SERVER,
    ".extraArgs",
    "!has(self.extraArgs) || !self.extraArgs.exists(a, a.contains('\\n'))",
    "an argument has no line break in it",
);
