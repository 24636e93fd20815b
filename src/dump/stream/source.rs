//! The bytes of a file, a pipe or what is made, and waiting for them without being deaf.

use std::fs::File;
use std::io::{self, Read, Seek};

use rustix::event::{PollFd, PollFlags, Timespec, poll};

use super::Interrupt;
use crate::clock::Clock;
use crate::dump::made::Making;
use crate::limits::INTERRUPT_INTERVAL;

/// As many bytes as tell every compression.
const HEAD: usize = 4;

/// What is read.
#[derive(Debug)]
enum Content {
    File(File),
    Made(Making),
}

/// A file, or what is read like one, whose first bytes can be looked at ahead.
#[derive(Debug)]
pub(super) struct Raw {
    content: Content,
    /// Whether reading may wait for somebody else, as from a pipe.
    may_wait: bool,
    interrupt: Option<Interrupt>,
    /// Waiting for bytes.
    clock: Clock,
    head: [u8; HEAD],
    head_start: usize,
    head_end: usize,
}

impl Raw {
    /// A file that is there as a whole.
    pub(super) fn regular(file: File) -> Self {
        Self::of(Content::File(file))
    }

    /// Documents that are made as they are read.
    pub(super) fn made(making: Making) -> Self {
        Self::of(Content::Made(making))
    }

    fn of(content: Content) -> Self {
        let (head, interrupt) = ([0; HEAD], None);
        let clock = Clock::default();
        Self { content, may_wait: false, interrupt, clock, head, head_start: 0, head_end: 0 }
    }

    /// A pipe, a terminal, a socket.
    pub(super) fn waiting(file: File, interrupt: Option<Interrupt>) -> Self {
        Self { may_wait: true, interrupt, ..Self::regular(file) }
    }

    /// Whether reading may wait for somebody else.
    pub(super) fn may_wait(&self) -> bool {
        self.may_wait
    }

    /// Gives up waiting once the interrupt asks for it.
    pub(super) fn interrupt_by(&mut self, interrupt: Interrupt) {
        self.interrupt = Some(interrupt);
    }

    /// Adds the time of waiting for bytes to this clock.
    pub(super) fn timed_by(&mut self, clock: &Clock) {
        self.clock = clock.clone();
    }

    /// Gives up waiting once this answers true as well.
    pub(super) fn interrupt_too(&mut self, asked: impl Fn() -> bool + Send + Sync + 'static) {
        let before = self.interrupt.take();
        self.interrupt = Some(Interrupt::when(move || {
            asked() || before.as_ref().is_some_and(Interrupt::is_asked_for)
        }));
    }

    /// The first bytes, fewer where there are no more; they will be read again.
    pub(super) fn peek(&mut self) -> io::Result<&[u8]> {
        while self.head_end < HEAD {
            self.wait()?;
            match self.content.read(&mut self.head[self.head_end..]) {
                Ok(0) => break,
                Ok(count) => self.head_end += count,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(&self.head[..self.head_end])
    }

    /// Leaves out the next bytes; false where they have to be read for that.
    pub(super) fn skip(&mut self, count: u64) -> io::Result<bool> {
        let Ok(distance) = i64::try_from(count) else {
            return Ok(false);
        };
        if self.may_wait || self.head_start < self.head_end {
            return Ok(false);
        }
        match &mut self.content {
            Content::File(file) => file.seek_relative(distance)?,
            Content::Made(_) => return Ok(false),
        }
        Ok(true)
    }

    /// Waits until there is something to read, or until it should be given up.
    fn wait(&self) -> io::Result<()> {
        let interrupt = self.interrupt.as_ref().filter(|_| self.may_wait);
        let (Some(interrupt), Content::File(file)) = (interrupt, &self.content) else {
            return Ok(());
        };
        let interval =
            Timespec { tv_sec: 0, tv_nsec: i64::from(INTERRUPT_INTERVAL.subsec_nanos()) };
        loop {
            let asked = &mut [PollFd::new(file, PollFlags::IN)];
            match poll(asked, Some(&interval)) {
                Ok(1..) => return Ok(()),
                Ok(0) | Err(rustix::io::Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
            if interrupt.is_asked_for() {
                return Err(io::Error::other("it was given up while nothing came"));
            }
        }
    }
}

impl Read for Content {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self {
            Self::File(file) => file.read(buffer),
            Self::Made(making) => making.read(buffer),
        }
    }
}

impl Read for Raw {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.head_start < self.head_end {
            let count = buffer.len().min(self.head_end - self.head_start);
            buffer[..count].copy_from_slice(&self.head[self.head_start..][..count]);
            self.head_start += count;
            return Ok(count);
        }
        // What is made is not waited for: it is work of this program.
        let is_file = matches!(self.content, Content::File(_));
        let _waiting = is_file.then(|| self.clock.begin());
        self.wait()?;
        self.content.read(buffer)
    }
}
