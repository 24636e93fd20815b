//! Whether the disk of the server has room for what is restored, as far as that can be told.

use crate::dump::inventory::Compression;
use crate::plan::RestorePlan;

/// A server compresses what it stores, on the whole to less than this part of its size.
const STORED_SHARE: u64 = 2;

/// What to say where the room is likely too small. Compression varies, so that it never refuses.
pub(super) fn warning(plan: &RestorePlan, free_bytes: Option<u64>) -> Option<String> {
    let free = free_bytes?;
    let (bytes, is_least) = bytes(plan);
    if free >= bytes / STORED_SHARE {
        return None;
    }
    let least = if is_least { "at least " } else { "" };
    Some(format!(
        "the disk of the server may be too small: {} are free there, and the documents are \
         {least}{} before the server compresses them, without indexes",
        readable(free),
        readable(bytes)
    ))
}

/// The bytes of the plan's documents, and whether they are more than that because some are
/// compressed.
fn bytes(plan: &RestorePlan) -> (u64, bool) {
    if let Some(archive) = plan.archive() {
        let is_compressed = archive.compression() != Compression::None;
        return (archive.bytes().unwrap_or(0), is_compressed);
    }
    let origins = plan.collections.iter().filter_map(|one| one.data.as_ref());
    origins.fold((0, false), |(bytes, is_least), origin| {
        let is_compressed = origin.file().is_some_and(|file| file.compression != Compression::None);
        (bytes + origin.bytes().unwrap_or(0), is_least || is_compressed)
    })
}

#[expect(clippy::cast_precision_loss, reason = "three digits are shown")]
fn readable(bytes: u64) -> String {
    const UNITS: [&str; 5] = ["B", "kB", "MB", "GB", "TB"];
    let mut value = bytes as f64;
    let mut unit = 0;
    while value >= 1000.0 && unit + 1 < UNITS.len() {
        value /= 1000.0;
        unit += 1;
    }
    if unit == 0 { format!("{bytes} B") } else { format!("{value:.1} {}", UNITS[unit]) }
}
