//! The lines of a ledger.
//!
//! A line is a JSON object, a tab, and the XXH3 of the object's bytes as 16 hexadecimal digits. The
//! last line may be cut where the program or the machine was stopped while it was written; a cut
//! or altered line anywhere else is damage.

use serde::{Deserialize, Serialize};
use twox_hash::XxHash3_64;

use crate::changes::Changes;
use crate::target::WriteMode;

/// The form of ledger that is written here.
pub(super) const VERSION: u32 = 1;

/// One thing that is known to be done.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Record {
    /// What the ledger is about; always the first line.
    Ledger(About),
    /// A collection stands on the target; later lines name it by its number.
    Collection(Stands),
    /// Documents of a collection are durably on the target, or refused for good.
    Range(Done),
    /// An oplog was being replayed: from here on collections may be renamed and dropped.
    Oplog,
    /// The run came to its end; nothing is left to do.
    Ended,
}

/// What a ledger is about.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct About {
    /// The form of the ledger.
    pub version: u32,
    /// The run that began it, as 24 hexadecimal digits; documents without an `_id` get one that is
    /// derived from it.
    pub run: String,
    /// The dump's fingerprint, as 32 hexadecimal digits.
    pub dump: String,
    /// The target's identity.
    pub target: String,
    /// What becomes of documents whose `_id` is there.
    #[serde(default)]
    pub mode: WriteMode,
}

/// A collection that stands on the target.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Stands {
    /// Its number in this ledger.
    pub number: u32,
    /// Its name in the dump.
    pub source: String,
    /// Its name on the target.
    pub target: String,
    /// Its UUID on the target, where the server tells it.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub uuid: Option<String>,
}

/// Documents that are done.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Done {
    /// The collection's number.
    #[serde(rename = "c")]
    pub collection: u32,
    /// Where the first of them begins, in bytes of the collection's documents.
    pub from: u64,
    /// Where the last of them ends.
    pub to: u64,
    /// Documents that the server took.
    pub inserted: u64,
    /// What became of those that found a stored one.
    #[serde(skip_serializing_if = "Changes::is_none", default)]
    pub changes: Changes,
    /// Documents that were there already.
    pub there: u64,
    /// Documents that were refused.
    pub rejected: u64,
    /// Documents of these whose `_id` another document was found to have.
    #[serde(skip_serializing_if = "is_zero", default)]
    pub conflicts: u64,
    /// How long the file of the collection's refused documents is with these; nothing where they
    /// are not kept.
    #[serde(skip_serializing_if = "is_zero", default)]
    pub kept: u64,
    /// How long the file of the reasons is.
    #[serde(skip_serializing_if = "is_zero", default)]
    pub lines: u64,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde calls it with a reference")]
fn is_zero(number: &u64) -> bool {
    *number == 0
}

/// The line of a record, with its end.
pub(super) fn line(record: &Record) -> Result<String, serde_json::Error> {
    let json = serde_json::to_string(record)?;
    let sum = XxHash3_64::oneshot(json.as_bytes());
    Ok(format!("{json}\t{sum:016x}\n"))
}

/// The record of a line without its end; nothing where it is cut or altered.
pub(super) fn parse(line: &[u8]) -> Option<Record> {
    let tab = line.iter().rposition(|&byte| byte == b'\t')?;
    let (json, sum) = (&line[..tab], std::str::from_utf8(&line[tab + 1..]).ok()?);
    let is_whole = sum.len() == 16 && format!("{:016x}", XxHash3_64::oneshot(json)) == sum;
    if is_whole { serde_json::from_slice(json).ok() } else { None }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn done() -> Record {
        Record::Range(Done {
            collection: 3,
            from: 7,
            to: 99,
            inserted: 4,
            changes: Changes { replaced: 3, ..Changes::default() },
            there: 1,
            rejected: 2,
            conflicts: 1,
            kept: 0,
            lines: 70,
        })
    }

    #[test]
    fn a_record_is_its_line() {
        let stands = Stands {
            number: 0,
            source: "a.b\tc\n".to_owned(),
            target: "x.y".to_owned(),
            uuid: Some("00".to_owned()),
        };
        for record in [done(), Record::Collection(stands), Record::Oplog, Record::Ended] {
            let line = line(&record).expect("written");
            assert_eq!(line.matches('\n').count(), 1, "{line}");
            assert_eq!(parse(line.trim_end().as_bytes()), Some(record));
        }
    }

    proptest! {
        #[test]
        fn an_altered_line_is_none(place in 0_usize..200, byte in any::<u8>()) {
            let whole = line(&done()).expect("written");
            let mut bytes = whole.trim_end().as_bytes().to_vec();
            let place = place % bytes.len();
            prop_assume!(bytes[place] != byte);
            bytes[place] = byte;
            prop_assert_eq!(parse(&bytes), None);
        }

        #[test]
        fn any_bytes_are_judged(bytes in prop::collection::vec(any::<u8>(), 0..80)) {
            prop_assert_eq!(parse(&bytes), None);
        }
    }
}
