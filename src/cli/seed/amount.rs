//! The arguments that say how many documents are made, and which.

use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use clap::Args;

use crate::cli::resumption::duration;
use crate::error::{Error, ErrorKind};
use crate::seed::{Amount, BlobBytes, Collections, Spec, SpecRun, scaled as times};

/// Documents of a collection where nothing is said.
const DOCUMENTS_DEFAULT: u64 = 1000;

#[derive(Args, Clone, Debug)]
pub(super) struct AmountArgs {
    /// How many documents in each collection [default: 1000, or what the spec says]
    #[arg(long, value_name = "N")]
    documents: Option<u64>,

    /// As many documents as are needed for so many bytes over all collections, uncompressed: at
    /// least that many if documents are as large as the first 10 000 on average. kB, MB, GB, TB are
    /// powers of 1000, KiB, MiB, GiB, TiB of 1024
    #[arg(long, value_name = "SIZE", value_parser = bytes, conflicts_with = "documents")]
    total_bytes: Option<u64>,

    /// Make documents until so much time is over, such as 10m, and compare them with what the
    /// server has then
    #[arg(long, value_name = "TIME", value_parser = duration)]
    #[arg(conflicts_with_all = ["documents", "total_bytes", "count", "scale"])]
    duration: Option<Duration>,

    /// Multiply --documents or --total-bytes, such as by 0.01 on a small machine
    #[arg(long, value_name = "FACTOR", value_parser = factor)]
    scale: Option<f64>,

    /// Make only the documents from this number on, counted from 0: parts that are made apart are
    /// the whole, byte for byte
    #[arg(long, value_name = "N", default_value_t = 0)]
    from: u64,

    /// Make only so many documents of each collection [default: up to the last]
    #[arg(long, value_name = "N")]
    count: Option<u64>,
}

impl AmountArgs {
    /// How long documents are made, where their number is not said.
    pub(super) fn duration(&self) -> Option<Duration> {
        self.duration
    }

    /// What is made of a spec, which `read` reads.
    pub(super) fn run_of(
        &self,
        seed: u64,
        read: impl Fn(Amount) -> Result<Spec, Error>,
    ) -> Result<SpecRun, Error> {
        let amount = match (self.documents, self.total_bytes) {
            (Some(each), _) => Amount::Each(scaled(each, self.scale)),
            (None, Some(bytes)) => {
                let said = read(Amount::AsSaid)?;
                Amount::Times(said.times_for(scaled(bytes, self.scale), seed))
            }
            (None, None) => self.scale.map_or(Amount::AsSaid, Amount::Times),
        };
        let run = SpecRun {
            spec: Arc::new(read(amount)?),
            seed,
            first: self.from,
            count: self.count,
            is_open: self.duration.is_some(),
        };
        if self.from > 0 && (1..=run.count()).all(|number| run.numbers(number).is_empty()) {
            let message = format!("no collection of the spec has a document {}", self.from);
            return Err(Error::new(ErrorKind::Usage, message).hint("numbers count from 0"));
        }
        Ok(run)
    }

    /// The numbers of the documents that are made of each collection; `documents_for` tells how
    /// many are needed for so many bytes.
    pub(super) fn numbers(
        &self,
        documents_for: impl FnOnce(u64) -> u64,
    ) -> Result<Range<u64>, Error> {
        if self.duration.is_some() {
            return Ok(self.from..u64::MAX);
        }
        let said = self.documents.or_else(|| Some(self.from.saturating_add(self.count?)));
        let whole = match self.total_bytes {
            Some(bytes) => documents_for(scaled(bytes, self.scale)),
            None => scaled(said.unwrap_or(DOCUMENTS_DEFAULT), self.scale),
        };
        let end = self.count.map_or(whole, |count| self.from.saturating_add(count));
        if self.from > whole || end > whole {
            let message = format!("a collection has {whole} documents, numbered from 0");
            return Err(Error::new(ErrorKind::Usage, message)
                .hint("--from and --count name a part of them"));
        }
        Ok(self.from..end)
    }
}

/// A number times a factor, at least 1 where it is not 0.
fn scaled(number: u64, factor: Option<f64>) -> u64 {
    factor.map_or(number, |factor| times(number, factor))
}

fn factor(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(factor) if factor > 0.0 && factor.is_finite() => Ok(factor),
        _ => Err("a factor above 0, such as 0.01, is needed".to_owned()),
    }
}

/// A size as disks and networks have it, in powers of 1000 unless said otherwise.
pub(super) fn bytes(text: &str) -> Result<u64, String> {
    let digits = text.trim_end_matches(|c: char| !c.is_ascii_digit());
    let unit: u64 = match text[digits.len()..].trim().to_ascii_lowercase().as_str() {
        "" | "b" => 1,
        "k" | "kb" => 1_000,
        "m" | "mb" => 1_000_000,
        "g" | "gb" => 1_000_000_000,
        "t" | "tb" => 1_000_000_000_000,
        "kib" => 1 << 10,
        "mib" => 1 << 20,
        "gib" => 1 << 30,
        "tib" => 1 << 40,
        other => return Err(format!("the unit {other} is not known; use kB, MB, GB or TB")),
    };
    let bytes = digits.parse::<u64>().ok().and_then(|number| number.checked_mul(unit));
    bytes.ok_or_else(|| "a size such as 38GB is needed".to_owned())
}

/// The size of a blob, or two with dots between them.
pub(super) fn blob_bytes(text: &str) -> Result<BlobBytes, String> {
    let (min, max) = text.split_once("..").unwrap_or((text, text));
    BlobBytes::between(bytes(min)?, bytes(max)?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        amount: AmountArgs,
    }

    /// Of documents of ten bytes.
    fn numbers(line: &str) -> Result<Range<u64>, String> {
        let words = std::iter::once("seed").chain(line.split_whitespace());
        let line = Line::try_parse_from(words).map_err(|error| error.to_string())?;
        line.amount.numbers(|bytes| bytes.div_ceil(10)).map_err(|error| error.to_string())
    }

    #[test]
    fn numbers_are_those_of_the_whole_or_of_a_part() {
        for (line, expected) in [
            ("", 0..1000),
            ("--documents 0", 0..0),
            ("--documents 50 --from 20", 20..50),
            ("--documents 50 --from 20 --count 30", 20..50),
            ("--documents 50 --count 7", 0..7),
            ("--from 5000 --count 10", 5000..5010),
            ("--documents 1000 --scale 0.01", 0..10),
            ("--documents 1000 --scale 0.000001", 0..1),
            ("--total-bytes 38kB", 0..3800),
            ("--total-bytes 1KiB", 0..103),
            ("--total-bytes 38kB --scale 0.1 --from 379", 379..380),
            ("--duration 10m --from 3", 3..u64::MAX),
        ] {
            assert_eq!(numbers(line), Ok(expected), "{line}");
        }
    }

    #[test]
    fn what_cannot_be_is_refused() {
        for line in [
            "--documents 50 --from 51",
            "--documents 50 --from 20 --count 31",
            "--documents 50 --total-bytes 1GB",
            "--duration 1m --count 5",
            "--duration 1m --documents 5",
            "--duration soon",
            "--scale 0",
            "--scale -1",
            "--total-bytes 5XB",
            "--total-bytes GB",
        ] {
            assert!(numbers(line).is_err(), "{line}");
        }
    }
}
