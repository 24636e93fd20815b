//! Open files: every connection is one, and systems let a process have few of them.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use crate::error::{Error, ErrorKind};
use crate::limits::PROBE_OTHER_FILES;

/// Raises what this process may have open to what so many connections need, as far as it may.
///
/// # Errors
///
/// Where it may not have enough.
pub(super) fn allow(connections: u32) -> Result<(), Error> {
    let wanted = u64::from(connections) + PROBE_OTHER_FILES;
    let limit = getrlimit(Resource::Nofile);
    if limit.current.is_none_or(|current| current >= wanted) {
        return Ok(());
    }
    let most = limit.maximum.unwrap_or(u64::MAX);
    if most < wanted {
        return Err(too_few(connections, wanted, most));
    }
    let raised = Rlimit { current: Some(wanted), maximum: limit.maximum };
    setrlimit(Resource::Nofile, raised).map_err(|error| {
        let current = limit.current.unwrap_or(0);
        let message = format!("the limit of {current} open files cannot be raised: {error}");
        Error::new(ErrorKind::Usage, message)
    })
}

fn too_few(connections: u32, wanted: u64, most: u64) -> Error {
    let message = format!(
        "{connections} connections need {wanted} open files, and this process may have {most}"
    );
    Error::new(ErrorKind::Usage, message).hint(format!(
        "raise the limit with `ulimit -n {wanted}` as root, in /etc/security/limits.conf or with \
         LimitNOFILE= of systemd"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn more_than_the_system_allows_is_explained() {
        let most = getrlimit(Resource::Nofile).maximum;
        let Some(beyond) = most.and_then(|most| u32::try_from(most).ok()) else {
            return;
        };
        let error = allow(beyond).expect_err("too many");
        assert!(error.hint_text().is_some_and(|hint| hint.contains("ulimit -n")), "{error}");
        allow(10).expect("a few are always allowed");
    }
}
