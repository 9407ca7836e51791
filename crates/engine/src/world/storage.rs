//! `storage`: the fill levels of the storages.

use super::World;
use super::value::size;
use surface::vcl::Var;
use vcl_run::value::Value;

/// A property of a storage. A storage that does not exist reads as full and not happy.
pub(super) fn read(world: &World<'_>, storage: Option<u32>, var: Var) -> Value {
    let storages = &world.engine.storages;
    let usage = storage.and_then(|index| Some((index, storages.usage(index)?)));
    match (var, usage) {
        (Var::StorageHappy, usage) => Value::Bool(usage.is_some()),
        (Var::StorageFreeSpace, Some((index, _))) => size(storages.free_bytes(index)),
        (Var::StorageUsedSpace, Some((_, usage))) => size(usage.g_bytes),
        (_, _) => Value::Bytes(0),
    }
}

/// The name of a storage without prefix; empty for none.
pub(super) fn name<'a>(world: &'a World<'_>, storage: Option<u32>) -> &'a str {
    storage.and_then(|index| world.engine.storages.name(index)).map_or("", |storage| storage.name.as_str())
}
