//! The runs as comma-separated values (RFC 4180), one a line, warm-ups included.

use std::fmt::Write as _;

use super::compare::Comparison;
use super::figures::{FIGURES, Run};

/// A table of all runs.
pub fn table(comparison: &Comparison) -> String {
    let mut text = String::from("label,kind,round,place,status,documents_missing");
    for figure in &FIGURES {
        text.push(',');
        text.push_str(figure.name);
    }
    text.push_str(",load_before,stolen_share,loop_seconds\r\n");
    for sample in &comparison.samples {
        let Some(cell) = comparison.settings.get(sample.cell) else { continue };
        let run = Run { sample, cell, dump: &comparison.setup.dump };
        let kind = format!("{:?}", cell.kind).to_lowercase();
        let status = sample.status.map(|status| status.to_string()).unwrap_or_default();
        // Writing to a string cannot fail.
        let _ = write!(
            text,
            "{},{kind},{},{},{status},{}",
            quoted(&cell.label),
            sample.round,
            sample.place,
            sample.documents_missing
        );
        for figure in &FIGURES {
            let value = (figure.value)(&run).map(|value| value.to_string()).unwrap_or_default();
            let _ = write!(text, ",{value}");
        }
        let around = sample.surroundings;
        let stolen = around.stolen.map(|share| share.to_string()).unwrap_or_default();
        let _ = write!(text, ",{},{stolen},{}\r\n", around.load, around.loop_seconds);
    }
    text
}

fn quoted(text: &str) -> String {
    if text.contains(['"', ',', '\n', '\r']) {
        format!("\"{}\"", text.replace('"', "\"\""))
    } else {
        text.to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::super::compare::compare;
    use super::super::sample::made;
    use super::*;

    #[test]
    fn every_run_is_a_line_with_as_many_fields_as_the_header() {
        let mut all = made::samples(&[[2.0, 1.0], [2.5, 1.0]]);
        all.cells[0].label = "restorm \"x\"".into();
        all.samples[1].server_cpu_seconds = None;
        let table = table(&compare(all));
        let lines: Vec<_> = table.split_terminator("\r\n").collect();
        assert_eq!(lines.len(), 5);
        for line in &lines {
            assert_eq!(line.split(',').count(), lines[0].split(',').count(), "{line}");
        }
        assert!(
            lines[1].starts_with("\"restorm \"\"x\"\"\",restore,1,0,0,0,500,1,2,0.1,"),
            "{}",
            lines[1]
        );
        assert!(lines[2].contains(",1,0.1,0.30000000000000004,,"), "{}", lines[2]);
    }

    #[test]
    fn fields_with_commas_are_quoted() {
        assert_eq!(quoted("a,b"), "\"a,b\"");
        assert_eq!(quoted("a b"), "a b");
    }
}
