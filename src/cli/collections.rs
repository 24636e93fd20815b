//! The arguments that say how collections are created and documents are checked.

use clap::Args;

use crate::command::restore::{DocumentCheck, OptionPolicy, UuidPolicy, Validation};
use crate::report::OptionValue;

#[derive(Args, Clone, Debug, Default)]
#[expect(clippy::struct_excessive_bools, reason = "flags as typed; options have enums")]
pub(super) struct CollectionArgs {
    /// Create collections without their options; time-series collections are left out then
    #[arg(long, alias = "noOptionsRestore", help_heading = "What is restored")]
    no_options: bool,

    /// Create collections with the UUIDs that they had; needs --drop and the right to applyOps
    #[arg(long, alias = "preserveUUID", requires = "drop", help_heading = "What is restored")]
    preserve_uuid: bool,

    /// Check the structure of each document before it is sent; a damaged one is counted as
    /// rejected and the rest goes on
    #[arg(long, help_heading = "How it is done")]
    objcheck: bool,

    /// Let validators judge the documents; by default they are bypassed, since the documents were
    /// accepted once
    #[arg(long, help_heading = "What is restored")]
    validate_documents: bool,

    /// Bypass validators, as is done anyway
    #[arg(long, alias = "bypassDocumentValidation", conflicts_with = "validate_documents")]
    #[arg(hide = true)]
    bypass_document_validation: bool,
}

impl CollectionArgs {
    pub(super) fn options(&self) -> OptionPolicy {
        if self.no_options { OptionPolicy::Skip } else { OptionPolicy::Restore }
    }

    pub(super) fn uuids(&self) -> UuidPolicy {
        if self.preserve_uuid { UuidPolicy::Preserve } else { UuidPolicy::New }
    }

    pub(super) fn check(&self) -> DocumentCheck {
        if self.objcheck { DocumentCheck::Structure } else { DocumentCheck::Extent }
    }

    pub(super) fn validation(&self) -> Validation {
        if self.validate_documents { Validation::Kept } else { Validation::Bypassed }
    }

    /// What was asked for, as the report tells it.
    pub(super) fn told(&self) -> impl Iterator<Item = OptionValue> {
        [
            ("no-options", self.no_options),
            ("preserve-uuid", self.preserve_uuid),
            ("objcheck", self.objcheck),
            ("validate-documents", self.validate_documents),
            ("bypass-document-validation", self.bypass_document_validation),
        ]
        .into_iter()
        .filter(|(_, is_set)| *is_set)
        .map(|(name, _)| OptionValue { name: name.into(), value: "true".into() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        collections: CollectionArgs,
        #[arg(long)]
        drop: bool,
    }

    fn parse(line: &str) -> Option<CollectionArgs> {
        let words = std::iter::once("restore").chain(line.split_whitespace());
        let line = Line::try_parse_from(words).ok()?;
        (line.drop == line.collections.preserve_uuid).then_some(line.collections)
    }

    #[test]
    fn both_spellings_are_taken() {
        for line in [
            "--no-options --preserve-uuid --drop --objcheck --bypass-document-validation",
            "--noOptionsRestore --preserveUUID --drop --objcheck --bypassDocumentValidation",
        ] {
            let args = parse(line).expect("parsed");
            assert_eq!(args.options(), OptionPolicy::Skip);
            assert_eq!(args.uuids(), UuidPolicy::Preserve);
            assert_eq!(args.check(), DocumentCheck::Structure);
            assert_eq!(args.validation(), Validation::Bypassed);
            assert_eq!(args.told().count(), 4);
        }
        assert_eq!(parse("--validate-documents").expect("parsed").validation(), Validation::Kept);
    }

    #[test]
    fn what_cannot_be_is_refused() {
        assert!(parse("--preserve-uuid").is_none());
        assert!(parse("--validate-documents --bypassDocumentValidation").is_none());
    }
}
