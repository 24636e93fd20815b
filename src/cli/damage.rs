//! The arguments about damaged dumps.

use std::path::PathBuf;

use clap::Args;

use crate::command::restore::Damage;
use crate::report::OptionValue;

/// Damaged dumps
#[derive(Args, Clone, Debug)]
pub(super) struct DamageArgs {
    /// Restore all that can be read around damage: every document is checked, and behind one that
    /// is damaged the next plausible one is looked for
    #[arg(long, help_heading = "Damage")]
    salvage: bool,

    /// Where --salvage keeps the bytes that are lost, with a list of them [default: the dump's
    /// path and `.salvage`]
    #[arg(long, value_name = "DIR", requires = "salvage", help_heading = "Damage")]
    salvage_dir: Option<PathBuf>,
}

impl DamageArgs {
    pub(super) fn damage(&self) -> Damage {
        if self.salvage {
            Damage::ReadAround { folder: self.salvage_dir.clone() }
        } else {
            Damage::EndsCollection
        }
    }

    /// What differs from the defaults, as the report tells it.
    pub(super) fn told(&self) -> Vec<OptionValue> {
        let value = |name: &str, value: String| OptionValue { name: name.to_owned(), value };
        let salvage = self.salvage.then(|| value("salvage", "true".to_owned()));
        let folder = self.salvage_dir.as_ref();
        let folder = folder.map(|folder| value("salvage-dir", folder.display().to_string()));
        salvage.into_iter().chain(folder).collect()
    }
}
