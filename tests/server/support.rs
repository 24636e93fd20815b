//! Servers for the tests, and what is looked at on them.

pub(crate) mod dump;
mod held;
mod mongod;
mod pool;
pub(crate) mod prometheus;
pub(crate) mod proxy;
pub(crate) mod raw;
mod replica_set;
mod restore;
mod server;
mod small_disk;
mod state;
mod verified;
mod version;

pub(crate) use held::Held;
pub(crate) use mongod::Mongod;
pub(crate) use replica_set::ReplicaSet;
pub(crate) use restore::{Restore, Restored};
pub(crate) use server::{PASSWORD, Server, connect};
pub(crate) use small_disk::SmallDisk;
pub(crate) use state::{differences, md5_sum, state_of, stored};
pub(crate) use verified::{differing, verified, verified_part};
pub(crate) use version::{is_before, keeps_zero_timestamps, lacks, version_text};

use std::sync::OnceLock;
use tokio::runtime::{Builder, Runtime};

/// The runtime on which every client of the tests lives.
pub(crate) fn runtime() -> &'static Runtime {
    static RUNTIME: OnceLock<Runtime> = OnceLock::new();
    RUNTIME.get_or_init(|| {
        Builder::new_multi_thread().worker_threads(2).enable_all().build().expect("a runtime")
    })
}
