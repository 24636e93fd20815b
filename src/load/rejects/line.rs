//! The line that says why a document was refused.

use bson::Bson;
use serde::Serialize;

use crate::frame::Frame;
use crate::load::rejects::{Kept, Place};
use crate::load::worker::raw_id;
use crate::report::Rejection;

/// Why a document was refused, and where it lies.
#[derive(Serialize)]
pub(super) struct Line<'a> {
    namespace: String,
    #[serde(rename = "_id")]
    id: serde_json::Value,
    code: i32,
    message: &'a str,
    conflict: bool,
    file: &'a str,
    offset: u64,
    kept_at: u64,
    bytes: usize,
}

impl<'a> Line<'a> {
    pub(super) fn of(place: &'a Place, rejection: &'a Rejection, kept: &Kept, at: u64) -> Self {
        let id = Frame::new(&kept.bytes).ok().and_then(raw_id);
        let id = id.and_then(|id| Bson::try_from(id).ok());
        Self {
            namespace: format!("{}.{}", place.namespace.database(), place.namespace.collection()),
            id: id.map_or(serde_json::Value::Null, Bson::into_canonical_extjson),
            code: rejection.code,
            message: &rejection.message,
            conflict: rejection.is_conflict,
            file: &place.origin,
            offset: kept.offset,
            kept_at: at,
            bytes: kept.bytes.len(),
        }
    }

    pub(super) fn write_to(&self, lines: &mut Vec<u8>) {
        // Nothing of it is a map with keys that are no texts, and memory takes everything.
        let _ = serde_json::to_writer(&mut *lines, self);
        lines.push(b'\n');
    }
}
