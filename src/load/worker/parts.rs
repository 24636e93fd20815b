//! Parts of a batch that are sent one by one, where something on the way lets no larger one pass.

use crate::batch::Batch;
use crate::target::Documents;

/// Connections that were lost over the same documents.
#[derive(Debug, Default)]
pub(super) struct Losses {
    /// How many, one after the other.
    pub(super) times: u32,
    /// Whether a group was halved for them since the last answer.
    pub(super) is_halved: bool,
}

/// The parts in which a group is sent so that none has more bytes than pass, unless it is one
/// document; the first one last.
pub(super) fn of(batch: &Batch, group: Documents, passing_bytes: usize) -> Vec<Documents> {
    if batch.array().len() <= passing_bytes {
        return vec![group];
    }
    let lengths: Vec<_> = batch.frames().map(|frame| frame.bytes().len()).collect();
    let mut groups: Vec<Vec<u32>> = Vec::new();
    let mut bytes = usize::MAX;
    for index in group.indexes(batch.documents) {
        let length = lengths[index as usize];
        bytes = bytes.saturating_add(length);
        if let Some(group) = groups.last_mut().filter(|_| bytes <= passing_bytes) {
            group.push(index);
        } else {
            groups.push(vec![index]);
            bytes = length;
        }
    }
    groups.into_iter().rev().map(Documents::Only).collect()
}

/// The bytes of the documents of a group.
pub(super) fn bytes(batch: &Batch, group: &Documents) -> usize {
    match group {
        Documents::All => batch.array().len(),
        Documents::Only(indexes) => {
            let lengths: Vec<_> = batch.frames().map(|frame| frame.bytes().len()).collect();
            indexes.iter().map(|&index| lengths[index as usize]).sum()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::batch::{BatchLimits, Batcher, BufferPool, Position, ZeroTimestamps};
    use crate::frame::Frame;
    use bson::doc;

    #[test]
    fn parts_hold_all_documents_in_their_order_and_no_more_than_passes() {
        let pool = BufferPool::new(1, 1 << 20);
        let mut batcher =
            Batcher::new(0, BatchLimits::new(100, 1 << 20), ZeroTimestamps::Kept, pool);
        for size in [10, 10, 500, 10, 10, 10] {
            let bytes = doc! { "p": "x".repeat(size) }.to_vec().expect("encodes");
            batcher.push(Frame::new(&bytes).expect("a frame"), Position::default());
        }
        let batch = batcher.finish(Position::default()).expect("a batch");
        assert_eq!(of(&batch, Documents::All, 5000), [Documents::All]);
        let mut parts = of(&batch, Documents::All, 60);
        parts.reverse();
        let expected = [vec![0, 1], vec![2], vec![3, 4], vec![5]].map(Documents::Only);
        assert_eq!(parts, expected);
        let some = Documents::Only(vec![1, 4, 5]);
        let expected = [vec![5], vec![1, 4]].map(Documents::Only);
        assert_eq!(of(&batch, some, 60), expected);
        assert_eq!(bytes(&batch, &parts[0]), 2 * (5 + 3 + 4 + 11));
    }
}
