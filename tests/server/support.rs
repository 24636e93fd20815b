//! Servers for the tests, and what is looked at on them.

mod mongod;
mod pool;
mod server;
mod state;

pub(crate) use mongod::Mongod;
pub(crate) use server::Server;
pub(crate) use state::{differences, state_of};

use std::sync::OnceLock;
use tokio::runtime::{Builder, Runtime};

/// The runtime on which every client of the tests lives.
pub(crate) fn runtime() -> &'static Runtime {
    static RUNTIME: OnceLock<Runtime> = OnceLock::new();
    RUNTIME.get_or_init(|| {
        Builder::new_multi_thread().worker_threads(2).enable_all().build().expect("a runtime")
    })
}
