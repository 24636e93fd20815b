//! Tries again what only reads, while the server is away.

use std::time::Duration;

use tokio::time::Instant;

use crate::load::retry::{self, Verdict};
use crate::load::stop::Stop;
use crate::target::TargetError;

/// Makes attempts, with pauses, for as long as the failure is one that passes and the time has not
/// run out.
pub async fn with_patience<R, F>(
    retry_for: Duration,
    stop: &Stop,
    mut attempt: impl FnMut() -> F,
) -> Result<R, TargetError>
where
    F: Future<Output = Result<R, TargetError>>,
{
    let began = Instant::now();
    let mut repetition = 0;
    loop {
        let error = match attempt().await {
            Ok(result) => return Ok(result),
            Err(error) => error,
        };
        let passes = retry::verdict(&error, false) == Verdict::Retry;
        if !passes || stop.is_requested() || began.elapsed() >= retry_for {
            return Err(error);
        }
        repetition += 1;
        tokio::time::sleep(retry::delay_after(&error.message, repetition)).await;
    }
}
