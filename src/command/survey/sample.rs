//! Documents that are shown as examples.

use bson::{Bson, Document, RawDocument};

use crate::limits::SURVEY_SAMPLE_CHARACTERS;
use crate::report::survey::SampleDocument;

/// Bytes of a document that are made text, value by value. Text is about as long, so that nothing
/// is lost that would not be cut; one value may be as large as a document.
const BYTES_MAX: usize = 4 * SURVEY_SAMPLE_CHARACTERS;

/// The first few documents of each end of a collection.
pub(super) struct Samples {
    taken: Vec<SampleDocument>,
    wanted: usize,
    ends_left: usize,
    wanted_of_end: usize,
}

impl Samples {
    /// So many documents from so many ends.
    pub(super) fn new(wanted: usize, ends: usize) -> Self {
        Self { taken: Vec::new(), wanted, ends_left: ends, wanted_of_end: 0 }
    }

    /// Goes on with the next end.
    pub(super) fn begin(&mut self) {
        let left = self.wanted - self.taken.len();
        self.wanted_of_end = left.div_ceil(self.ends_left.max(1));
        self.ends_left = self.ends_left.saturating_sub(1);
    }

    /// Takes a document if more are wanted.
    pub(super) fn add(&mut self, document: &RawDocument) {
        if self.wanted_of_end > 0 {
            self.wanted_of_end -= 1;
            self.taken.push(sample(document));
        }
    }

    pub(super) fn finish(self) -> Vec<SampleDocument> {
        self.taken
    }
}

/// A document as text of a bounded length.
fn sample(document: &RawDocument) -> SampleDocument {
    let mut shown = Document::new();
    let mut left = BYTES_MAX;
    let mut is_cut = false;
    for element in document.iter_elements() {
        let Ok(element) = element else {
            is_cut = true;
            break;
        };
        let size = element.size();
        let value = element.value().ok().filter(|_| size <= left);
        let Some(value) = value.and_then(|value| Bson::try_from(value).ok()) else {
            is_cut = true;
            continue;
        };
        left -= size;
        shown.insert(element.key().as_str(), value);
    }
    let mut json = Bson::Document(shown).into_relaxed_extjson().to_string();
    if let Some((end, _)) = json.char_indices().nth(SURVEY_SAMPLE_CHARACTERS) {
        json.truncate(end);
        is_cut = true;
    }
    SampleDocument { bytes: document.as_bytes().len() as u64, json, is_cut }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bson::{RawDocumentBuf, doc};

    fn raw(document: &Document) -> RawDocumentBuf {
        RawDocumentBuf::try_from(document).expect("it has no odd names")
    }

    #[test]
    fn a_document_is_shown_as_it_is() {
        let shown =
            sample(&raw(&doc! { "_id": 1, "at": bson::DateTime::from_millis(0), "b": [2] }));
        assert_eq!(shown.json, r#"{"_id":1,"at":{"$date":"1970-01-01T00:00:00Z"},"b":[2]}"#);
        assert!(!shown.is_cut);
        assert_eq!(shown.bytes, 41);
    }

    #[test]
    fn a_large_value_is_left_out_and_a_long_text_is_cut() {
        let large = sample(&raw(&doc! { "_id": 1, "p": "x".repeat(1 << 20), "q": 2 }));
        assert_eq!((large.json.as_str(), large.is_cut), (r#"{"_id":1,"q":2}"#, true));
        let long = sample(&raw(&doc! { "p": "é".repeat(3000) }));
        assert_eq!(long.json.chars().count(), SURVEY_SAMPLE_CHARACTERS);
        assert!(long.is_cut);
    }

    #[test]
    fn each_end_gives_its_share() {
        let ids = |wanted, ends: &[&[i32]]| {
            let mut samples = Samples::new(wanted, ends.len());
            for end in ends {
                samples.begin();
                end.iter().for_each(|id| samples.add(&raw(&doc! { "_id": *id })));
            }
            samples.finish().into_iter().map(|one| one.json).collect::<Vec<_>>().join(" ")
        };
        assert_eq!(ids(2, &[&[1, 2], &[9, 8]]), r#"{"_id":1} {"_id":9}"#);
        assert_eq!(ids(3, &[&[1, 2, 3], &[9, 8]]), r#"{"_id":1} {"_id":2} {"_id":9}"#);
        assert_eq!(ids(2, &[&[1, 2, 3]]), r#"{"_id":1} {"_id":2}"#);
        assert_eq!(ids(2, &[&[], &[9, 8]]), r#"{"_id":9} {"_id":8}"#);
        assert_eq!(ids(0, &[&[1]]), "");
    }
}
