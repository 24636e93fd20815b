//! Tests of compressed streams: a thread that unpacks changes nothing but the time it takes.

use std::collections::HashSet;
use std::io::{PipeReader, PipeWriter, Write, pipe};
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use super::*;
use crate::limits::READ_BUFFERS_MAX;
use flate2::write::GzEncoder;
use proptest::prelude::*;

/// Long enough for a thread to end, far longer than it takes.
const PATIENCE: Duration = Duration::from_secs(10);

/// Bytes that compress to about a half.
fn content(length: usize) -> Vec<u8> {
    let mut state = 1_u64;
    let mut next = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        b'a' + u8::try_from(state >> 60).expect("four bits")
    };
    (0..length).map(|_| next()).collect()
}

fn packed(bytes: &[u8], compression: Compression) -> Vec<u8> {
    if compression == Compression::Zstd {
        return zstd::encode_all(bytes, 1).expect("encoded");
    }
    let mut encoder = GzEncoder::new(Vec::new(), flate2::Compression::fast());
    encoder.write_all(bytes).expect("written");
    encoder.finish().expect("finished")
}

fn stream_of(file: &tempfile::NamedTempFile, compression: Compression) -> Stream {
    let bytes = file.path().metadata().expect("it is there").len();
    Stream::open(&DataFile { path: file.path().to_owned(), compression, bytes }).expect("opened")
}

fn stored(bytes: &[u8]) -> tempfile::NamedTempFile {
    let mut file = tempfile::NamedTempFile::new().expect("a file");
    file.write_all(bytes).expect("written");
    file
}

/// What comes through a pipe.
fn piped(reader: PipeReader, interrupt: Option<Interrupt>) -> Stream {
    let raw = Raw::waiting(File::from(OwnedFd::from(reader)), interrupt);
    Stream::new(PathBuf::from("a pipe"), raw, Compression::Gzip).expect("opened")
}

fn unpacked_by_a_thread(stream: &mut Stream) -> JoinHandle<()> {
    let unpacking = stream.unpack_aside().expect("it is compressed");
    thread::spawn(|| unpacking.run())
}

#[track_caller]
fn ends(thread: JoinHandle<()>) {
    let began = Instant::now();
    while !thread.is_finished() {
        assert!(began.elapsed() < PATIENCE, "the thread goes on");
        thread::sleep(Duration::from_millis(5));
    }
    thread.join().expect("it did not panic");
}

/// All that a stream gives, asked for in pieces of these sizes by turns, and how it ended.
fn drained(stream: &mut Stream, sizes: &[usize]) -> (Vec<u8>, Result<(), String>, u64, u64) {
    let mut bytes = Vec::new();
    for &size in sizes.iter().cycle() {
        let ended = match stream.fill(size) {
            Ok(true) => {
                bytes.extend_from_slice(&stream.ahead()[..size]);
                stream.advance(size);
                assert_eq!(stream.behind(size), &bytes[bytes.len() - size..]);
                continue;
            }
            Ok(false) => Ok(()),
            Err(error) => Err(format!("{error} at {:?}", error.offset())),
        };
        bytes.extend_from_slice(stream.ahead());
        return (bytes, ended, stream.offset(), stream.origin());
    }
    unreachable!("sizes are not empty")
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]

    #[test]
    fn a_thread_that_unpacks_changes_nothing(
        length in 0_usize..1_200_000,
        sizes in prop::collection::vec(
            prop_oneof![
                Just(4_usize), 1_usize..2000, ROOM_BEFORE - 2..ROOM_BEFORE + 2, 1..3 * READ_BYTES
            ],
            1..6,
        ),
        is_zstd in any::<bool>(),
        damage in prop_oneof![
            3 => Just((1.0, 0_u8)), 1 => (0.0..1.0, Just(0)), 1 => (0.0..1.0, 1_u8..)
        ],
        begun_here in any::<bool>(),
    ) {
        let compression = if is_zstd { Compression::Zstd } else { Compression::Gzip };
        let whole = content(length);
        let mut file = packed(&whole, compression);
        let (share, flipped): (f64, u8) = damage;
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, clippy::cast_precision_loss, reason = "a share of a small file")]
        let at = (file.len() as f64 * share) as usize;
        match flipped {
            0 => file.truncate(at),
            bits => file[at] ^= bits,
        }
        let file = stored(&file);
        let here = drained(&mut stream_of(&file, compression), &sizes);
        let mut stream = stream_of(&file, compression);
        if begun_here {
            // As the list of an archive is read; damage there is met before there is a thread.
            let _ = stream.fill(1);
        }
        let is_damaged = begun_here && stream.available() == 0 && length > 0;
        prop_assume!(!is_damaged);
        let thread = unpacked_by_a_thread(&mut stream);
        let aside = drained(&mut stream, &sizes);
        drop(stream);
        ends(thread);
        prop_assert_eq!(&here.1, &aside.1);
        prop_assert!(here == aside);
        if share.to_bits() == 1.0_f64.to_bits() {
            prop_assert_eq!(&here.1, &Ok(()));
            prop_assert!(here.0 == whole);
        } else if flipped == 0 && here.1.is_ok() {
            // Nothing at all is a gzip file without a member.
            prop_assert!(here.0.is_empty());
        }
    }
}

#[test]
fn buffers_are_used_again() {
    for compression in [Compression::Gzip, Compression::Zstd] {
        let file = stored(&packed(&content(40 * READ_BYTES), compression));
        let mut stream = stream_of(&file, compression);
        let thread = unpacked_by_a_thread(&mut stream);
        let mut buffers = HashSet::new();
        while stream.fill(1000).expect("it is whole") {
            buffers.insert(stream.buffer.as_ptr());
            stream.advance(1000);
        }
        ends(thread);
        assert!(buffers.len() <= READ_BUFFERS_MAX, "{}", buffers.len());
    }
}

#[test]
fn the_thread_ends_with_its_reader() {
    let file = stored(&packed(&content(40 * READ_BYTES), Compression::Gzip));
    let mut stream = stream_of(&file, Compression::Gzip);
    let thread = unpacked_by_a_thread(&mut stream);
    assert!(stream.fill(1).expect("it is whole"));
    assert!(!thread.is_finished(), "most is not unpacked yet");
    drop(stream);
    ends(thread);
}

#[test]
fn the_thread_is_asked_for_once_and_only_where_there_is_something_to_unpack() {
    let file = stored(&packed(b"content", Compression::Zstd));
    let mut stream = stream_of(&file, Compression::Zstd);
    assert!(stream.unpack_aside().is_some());
    assert!(stream.unpack_aside().is_none());
    assert!(stream_of(&file, Compression::None).unpack_aside().is_none());
}

#[test]
fn unpacking_that_never_runs_is_an_error_and_no_end() {
    let file = stored(&packed(b"content", Compression::Gzip));
    let mut stream = stream_of(&file, Compression::Gzip);
    drop(stream.unpack_aside());
    let error = stream.fill(1).expect_err("nobody unpacks");
    assert!(error.to_string().contains("its unpacking ended before it"), "{error}");
}

/// A pipe through which the first of two parts of a file came, and the rest.
fn half_a_pipe() -> (PipeReader, PipeWriter, Vec<u8>) {
    let (reader, mut writer) = pipe().expect("a pipe");
    let file = packed(&content(50_000), Compression::Gzip);
    writer.write_all(&file[..file.len() / 2]).expect("it fits into the pipe");
    (reader, writer, file[file.len() / 2..].to_vec())
}

#[test]
fn what_came_through_a_pipe_does_not_wait_for_what_comes() {
    let (reader, mut writer, rest) = half_a_pipe();
    let mut stream = piped(reader, None);
    let thread = unpacked_by_a_thread(&mut stream);
    assert!(stream.fill(1000).expect("it is whole"));
    writer.write_all(&rest).expect("it fits into the pipe");
    drop(writer);
    let (bytes, ended, ..) = drained(&mut stream, &[1000]);
    assert_eq!((bytes.len(), ended), (50_000, Ok(())));
    ends(thread);
}

#[test]
fn the_thread_ends_with_its_reader_while_it_waits_for_a_pipe() {
    for interrupt in [None, Some(Interrupt::when(|| false))] {
        let (reader, writer, _) = half_a_pipe();
        let mut stream = piped(reader, interrupt);
        let thread = unpacked_by_a_thread(&mut stream);
        assert!(stream.fill(1000).expect("it is whole"));
        drop(stream);
        ends(thread);
        drop(writer);
    }
}

#[test]
fn an_interrupt_ends_the_wait_for_a_pipe() {
    let (reader, writer, _) = half_a_pipe();
    let is_asked = Arc::new(AtomicBool::new(false));
    let mut stream = piped(reader, None);
    let asked = Arc::clone(&is_asked);
    stream.interrupt_by(Interrupt::when(move || asked.load(Ordering::Relaxed)));
    let thread = unpacked_by_a_thread(&mut stream);
    let reading = thread::spawn(move || drained(&mut stream, &[1000]));
    thread::sleep(Duration::from_millis(50));
    assert!(!reading.is_finished(), "there is more to come");
    let began = Instant::now();
    is_asked.store(true, Ordering::Relaxed);
    let (bytes, ended, offset, _) = reading.join().expect("it did not panic");
    assert!(began.elapsed() < PATIENCE);
    assert!(bytes.len() > 10_000, "what came before counts: {}", bytes.len());
    let said = ended.expect_err("it was given up");
    assert!(said.contains("given up") && said.contains(&format!("Some({offset})")), "{said}");
    ends(thread);
    drop(writer);
}
