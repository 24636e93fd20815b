//! Every bound and default in the program, each with its reason.

use std::time::Duration;

/// The smallest BSON document: a length of four bytes and a terminator.
pub const DOCUMENT_BYTES_MIN: usize = 5;

/// The largest document a server stores (`BSONObjMaxUserSize`, 16 MiB), plus the 16 KiB a server
/// allows itself for internal documents such as oplog entries (`BSONObjMaxInternalSize`).
pub const DOCUMENT_BYTES_MAX: usize = 16 * 1024 * 1024 + 16 * 1024;

/// The largest document that a server stores for its users (`BSONObjMaxUserSize`).
pub const DOCUMENT_BYTES_USER_MAX: usize = 16 * 1024 * 1024;

/// The largest command document a server accepts is `DOCUMENT_BYTES_MAX`; this much of it is kept
/// for the command's own fields (names, write concern, session, cluster time).
pub const COMMAND_OVERHEAD_BYTES: usize = 16 * 1024;

/// The most bytes of documents that one insert command carries, unless one document alone is more.
pub const BATCH_BYTES_MAX: usize = DOCUMENT_BYTES_MAX - 2 * COMMAND_OVERHEAD_BYTES;

/// The most documents that a server takes in one write command (`maxWriteBatchSize`).
pub const BATCH_DOCUMENTS_MAX: usize = 100_000;

/// Documents in a batch, unless told otherwise. Below 1000 the cost per command shows on both
/// sides; 2000 small documents cost the client 0.28 µs each against 0.37 µs at 1000, and larger
/// batches hold more memory for little (docs/benchmarks/2026-11-30-settings).
pub const BATCH_DOCUMENTS_DEFAULT: usize = 2000;

/// Bytes in a batch, unless told otherwise. A server works in groups of 256 KiB, so a batch of a
/// megabyte keeps it busy; larger batches only hold more memory.
pub const BATCH_BYTES_DEFAULT: usize = 1024 * 1024;

/// Batches in flight for which a run always has room: the throughput of one server levels off at
/// two to four, and twice that hides longer ways and the wait for the journal
/// (docs/benchmarks/2026-11-30-settings).
pub const WORKERS_DEFAULT: usize = 8;

/// Batches in flight at the beginning, unless told otherwise: enough for most servers to be within
/// a tenth of their best (docs/benchmarks/2026-11-30-settings).
pub const WORKERS_START: usize = 2;

/// Batches in flight up to which a run finds out by itself how many are best: over a way of 60 ms
/// they carry 500 MiB a second, and their buffers and a document of the largest size fit into
/// [`MEMORY_DEFAULT`].
pub const WORKERS_ADAPTIVE_MAX: usize = 32;

/// The time after which the number of batches in flight is thought over: a few answers of a server
/// that is near, and a few thousandths of the time of a short restore.
pub const PACE_INTERVAL: Duration = Duration::from_millis(20);

/// Changes of the number of batches in flight that are kept for the report; the rest are counted.
pub const WORKERS_DECISIONS_KEPT: usize = 200;

/// Batches a second, at least, where a rate is limited, so that it shows no bursts.
pub const LIMITED_BATCHES_PER_SECOND: u64 = 10;

/// More batches in flight than this only queue at the server.
pub const WORKERS_MAX: usize = 1024;

/// Collections read side by side, unless told otherwise; the peer's default.
pub const PARALLEL_COLLECTIONS_DEFAULT: usize = 4;

/// More reader threads than this only compete for the disk.
pub const PARALLEL_COLLECTIONS_MAX: usize = 256;

/// Index builds at once, unless told otherwise: a server runs three and queues the rest
/// (`maxNumActiveUserIndexBuilds`).
pub const PARALLEL_INDEX_BUILDS_DEFAULT: usize = 3;

/// Below this size of its data file, a collection's indexes are built with one command; above it,
/// with one each, because three commands at once take about two thirds of the time of one.
pub const INDEXES_TOGETHER_BYTES: u64 = 16 * 1024 * 1024;

/// Batches waiting between the readers and the workers. Two are enough to cover the moment in
/// which a reader is not scheduled; more only hold memory.
pub const QUEUE_BATCHES: usize = 2;

/// Oplog entries that are applied by one command, at most. The command is one storage transaction
/// on most servers, which should stay small; a tenth of this already hides the round trip.
pub const OPLOG_GROUP_OPERATIONS: usize = 500;

/// Bytes of oplog entries that are applied by one command, unless one entry alone is more. A server
/// writes them into its own oplog as one entry, which holds 16 MiB.
pub const OPLOG_GROUP_BYTES: usize = 1024 * 1024;

/// Bytes of the users of a dump, and of its roles, at most: they are held in memory until all
/// documents are restored. One takes a kilobyte or two, so that thirty thousand fit in.
pub const USERS_BYTES_MAX: usize = 64 * 1024 * 1024;

/// Bytes of operations that wait for the commit of their transactions, over all of them. A server
/// gives a transaction a minute (`transactionLifetimeLimitSeconds`) and keeps its changes in its
/// cache meanwhile; those that are left open for long are small.
pub const TRANSACTIONS_BYTES_MAX: usize = 1024 * 1024 * 1024;

/// Documents above this size are read only once there is room for them in the memory that a run may
/// take, and travel alone; up to it the buffers of readers and batches are made for them.
pub const LARGE_DOCUMENT_BYTES: usize = 1024 * 1024;

/// How often a large document exists while it passes: in the read buffer, with its `_id` moved, in
/// its batch, in the array and the command of a detour, and four times in the driver (its command,
/// the driver's copy, the encoded message, the wire).
pub const LARGE_DOCUMENT_COPIES: usize = 9;

/// The memory that buffers may take, unless told otherwise: two documents of the largest size at
/// once beside the buffers of the defaults.
pub const MEMORY_DEFAULT: usize = 384 * 1024 * 1024;

/// What a reader asks of the operating system at once; large enough that the calls do not show.
pub const READ_BYTES: usize = 256 * 1024;

/// What is cut from a text at once and turned into documents by one thread: some thousand documents
/// of ordinary size, which take about a millisecond, so that handing them over does not show.
pub const TEXT_CHUNK_BYTES: usize = 256 * 1024;

/// The longest text of one document. The canonical form of a document of many small numbers is four
/// times as long as its 16 MiB of BSON.
pub const TEXT_DOCUMENT_BYTES_MAX: usize = 80 * 1024 * 1024;

/// Rows of a file of columns that are decoded at once: as many documents as a few batches hold.
#[cfg(feature = "columnar")]
pub const COLUMNAR_ROWS: usize = 4096;

/// More threads than this that turn text into documents only compete for the processor.
pub const TEXT_PARSERS_MAX: usize = 256;

/// What a decompressor is fed at once.
pub const COMPRESSED_READ_BYTES: usize = 64 * 1024;

/// Chunks that wait between a thread that unpacks and its reader, beside the one that each of them
/// works at. A second one gains nothing and holds memory (docs/benchmarks/2026-11-30-inflate).
pub const UNPACKED_CHUNKS: usize = 1;

/// Buffers of [`READ_BYTES`] that a reader has at most: the one that it reads, and where a thread
/// of its own unpacks, those that wait, the one that is filled, and the one that is just taken.
pub const READ_BUFFERS_MAX: usize = UNPACKED_CHUNKS + 3;

/// Data files of fewer bytes than this, compressed, are unpacked by their reader: they take a few
/// milliseconds, of which a thread of its own would save less than it costs in places.
pub const UNPACK_ASIDE_BYTES_MIN: u64 = 1024 * 1024;

/// How often somebody who waits for a pipe asks whether to go on waiting: soon enough for a person
/// who has asked for the end, rarely enough to cost nothing.
pub const INTERRUPT_INTERVAL: Duration = Duration::from_millis(100);

/// The most bytes of an archive's list of collections. The list of 100 000 collections with three
/// indexes each is about half as large.
pub const ARCHIVE_LIST_BYTES_MAX: u64 = 128 * 1024 * 1024;

/// Bytes of documents that wait in the open batches of all collections of an archive, and in those
/// whose collection is not created yet. One document of the largest size fits beside the batches
/// of a dozen collections, more than any tool interleaves.
pub const ARCHIVE_WAITING_BYTES_MAX: usize = 32 * 1024 * 1024;

/// Collections created ahead of the readers. Creating costs the server about as much as a small
/// batch and runs side by side.
pub const CREATES_AHEAD: usize = 16;

/// Failures of one kind shown with their `_id` in the report of a collection; the rest are counted.
pub const FAILURE_SAMPLES: usize = 5;

/// Lost stretches listed in the report of a collection; a file beside the lost bytes lists all.
pub const LOST_STRETCHES_LISTED: usize = 1000;

/// Bytes of a damaged dump that are kept aside, over all its files. What is lost of sound
/// compression is a part of the dump's own size; only a bomb comes to more, and fills no disk.
pub const LOST_BYTES_KEPT_MAX: u64 = 16 * 1024 * 1024 * 1024;

/// What `inspect --deep` holds in memory of the `_id`s of one collection, or of an archive, before
/// it uses a temporary file: half a million of them.
pub const IDS_HELD_BYTES: usize = 16 * 1024 * 1024;

/// What is read at once of each sorted part of a temporary file of `_id`s.
pub const IDS_READ_BYTES: usize = 16 * 1024;

/// Nesting that a document may have before it is called damaged. A server accepts 200 levels.
pub const NESTING_MAX: usize = 200;

/// The largest metadata file that is read; genuine ones hold at most a few hundred kilobytes.
pub const METADATA_BYTES_MAX: u64 = 64 * 1024 * 1024;

/// The first wait before a batch is sent again.
pub const RETRY_DELAY_INITIAL: Duration = Duration::from_millis(100);

/// The longest wait before a batch is sent again.
pub const RETRY_DELAY_MAX: Duration = Duration::from_secs(5);

/// How long a batch is tried again before the run gives up, unless told otherwise: long enough for
/// a server to be started again and to recover from its journal, short enough that somebody who
/// waits for it hears of a server that is gone.
pub const RETRY_FOR: Duration = Duration::from_secs(600);

/// How long an insert may go unanswered before it is sent again over another connection, unless
/// told otherwise: longer than any checkpoint stalls a server, short enough that a host that is
/// gone without a word costs no night.
pub const ANSWER_WITHIN: Duration = Duration::from_secs(300);

/// The longest pause that a server may ask for.
pub const RETRY_DELAY_ASKED_MAX: Duration = Duration::from_secs(60);

/// Connections lost one after the other over the same documents before they are sent in halves: a
/// server that fails loses one or two and cannot be reached then.
pub const LOST_BEFORE_HALVING: u32 = 3;

/// The fewest bytes that are sent together because of lost connections; what lets even less pass
/// is met with every batch anew.
pub const NARROWED_BYTES_MIN: usize = 16 * 1024;

/// How long batches in flight are tried again once a stop was asked for: as long as the driver
/// looks for a server, so that a short failure is survived and a server that is gone is not.
pub const STOP_GRACE: Duration = Duration::from_secs(10);

/// The time between two looks at what is durable: what is acknowledged within it has to be sent
/// again after a kill where an acknowledgement alone is not durable.
pub const SETTLE_INTERVAL: Duration = Duration::from_millis(200);

/// The time between two syncs of the ledger: what has to be sent again after the machine itself has
/// failed, and rare enough for a disk that is busy with something else.
pub const LEDGER_SYNC_INTERVAL: Duration = Duration::from_secs(1);

/// Answers that wait to become durable, at most; beyond them workers wait as well. A fast server
/// answers a few hundred batches in the interval, so that this many mean that it has fallen
/// behind.
pub const ANSWERS_WAITING_MAX: usize = 4096;

/// Bytes of refused documents that count as one more answer that waits, so that waiting answers
/// hold 16 MiB of them at most.
pub const REFUSED_BYTES_PER_PLACE: usize = 4 * 1024;

/// Bytes of refused documents that are kept back to be written last, because their batches were not
/// answered for to the end; there is about one such batch for each worker.
pub const REJECTS_LATE_BYTES_MAX: usize = 16 * 1024 * 1024;

/// Documents that are read before a share of refused ones is judged: among the first few, one is
/// a large share.
pub const FAILURE_SHARE_DOCUMENTS: u64 = 1000;
/// Documents in one answer of a server that is read from, unless they fill the 16 MiB that one
/// holds before; small ones fill a megabyte or two, which hides the way to the server.
pub const SCAN_BATCH_DOCUMENTS: u32 = 5000;

/// Stretches into which the documents of a collection that differs are told apart by their `_id`:
/// few enough that their sums take 128 KiB, many enough that one of them holds few documents.
pub const VERIFY_PARTITIONS: usize = 4096;

/// Documents of a collection of which `_id` and hash are held at most to find those that differ,
/// about 30 MB a side. A single stretch is held whatever its size: that of a collection of a
/// thousand million documents has about as many.
pub const VERIFY_HELD_MAX: u64 = 262_144;

/// Collections of an archive whose differing documents are looked for together, because an archive
/// is read from its beginning for them.
pub const VERIFY_ARCHIVE_COLLECTIONS: usize = 16;

/// Documents looked up at once by their `_id`.
pub const VERIFY_LOOKUP_DOCUMENTS: usize = 1000;

/// Bytes of documents looked up at once by their `_id`, unless one is larger.
pub const VERIFY_LOOKUP_BYTES: usize = 4 * 1024 * 1024;

/// Differing documents listed for a collection, unless told otherwise.
pub const DIFFERENCES_DEFAULT: usize = 10;

/// The most differing documents that may be listed for a collection.
pub const DIFFERENCES_MAX: usize = 100_000;

/// Documents by which a spec is made of a collection: shares are right to about one in a hundred.
pub const SAMPLE_DOCUMENTS: u32 = 10_000;

/// Bytes of such documents after which no more are looked at: fewer large ones tell as much, and
/// none of them is worth minutes of a network.
pub const SAMPLE_BYTES: usize = 128 << 20;

/// How long they may take: a server reads all of a collection for more than a twentieth of it.
pub const SAMPLE_WITHIN: Duration = Duration::from_secs(120);

/// Collections that are surveyed at once; more only take turns at the server.
pub const SURVEY_AT_ONCE: usize = 8;

/// Collections of a server that are surveyed, at most: each takes two commands and a kilobyte.
pub const SURVEY_COLLECTIONS_MAX: usize = 10_000;

/// Collections whose documents are looked at in a survey, the largest ones: what is kept of each is
/// some ten kilobytes.
pub const SURVEY_DETAILED_MAX: usize = 1000;

/// Documents of a collection whose fields are listed in a survey, unless told otherwise: a field
/// that one in a hundred has is missed once in twenty thousand times.
pub const SURVEY_DOCUMENTS: u32 = 1000;

/// Bytes of a collection's documents that are looked at from each end; a thousand documents of the
/// largest size are 16 GiB.
pub const SURVEY_BYTES: usize = 16 * 1024 * 1024;

/// Documents of a collection that are shown in a survey, unless told otherwise.
pub const SURVEY_SAMPLES: usize = 2;

/// Documents of a collection that are shown in a survey, at most.
pub const SURVEY_SAMPLES_MAX: usize = 20;

/// Characters of a document that is shown in a survey; the rest is cut.
pub const SURVEY_SAMPLE_CHARACTERS: usize = 2000;

/// Fields of a collection that are listed in a survey; names that are data, such as dates, would
/// come to any number.
pub const SURVEY_FIELDS_MAX: usize = 300;

/// Levels of documents inside of documents whose fields are listed in a survey.
pub const SURVEY_LEVELS_MAX: usize = 5;

/// Elements of an array whose fields are listed in a survey.
pub const SURVEY_ELEMENTS_MAX: usize = 50;

/// How long a question of a survey may go unanswered before its answer is left out.
pub const SURVEY_QUESTION_WITHIN: Duration = Duration::from_secs(10);

/// How long a server may take to write its files before their sizes are asked for: longer than it
/// lets pass between two checkpoints of its own (`syncPeriodSecs`, a minute).
pub const SURVEY_CHECKPOINT_WITHIN: Duration = Duration::from_secs(90);

/// How long a survey may take before and after a restore, each.
pub const SURVEY_OF_RESTORE_WITHIN: Duration = Duration::from_secs(60);

/// How long a survey that is a run of its own may take.
pub const SURVEY_WITHIN: Duration = Duration::from_secs(600);

/// How long the first connection may take before the server is called unreachable.
pub const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

/// The time between two lines of progress where there is no terminal.
pub const PROGRESS_LINE_INTERVAL: Duration = Duration::from_secs(3);

/// The time between two lines of progress in JSON: often enough to draw a bar, and a few hundred
/// bytes each.
pub const JSON_LINE_INTERVAL: Duration = Duration::from_secs(1);

/// The stretch of time over which the current rate is taken.
pub const RATE_WINDOW: Duration = Duration::from_secs(3);

/// The columns that a report is fitted to where there is no terminal to ask.
pub const REPORT_COLUMNS: usize = 100;

/// The stretch of time over which the rate behind an estimated end is taken: long enough that the
/// estimate does not jump with every batch, short enough that it follows a change of pace.
pub const ETA_WINDOW: Duration = Duration::from_secs(30);

/// Collections that have metrics of their own, ten series each: a scrape of them all is 300 kB
/// and more, which Prometheus and a dashboard still take with ease. The largest have them.
pub const METRICS_NAMESPACES_MAX: usize = 500;

/// Error codes of a server that have a metric of their own; servers have some hundred of them, of
/// which a restore meets a few.
pub const METRICS_CODES_MAX: usize = 100;

/// Connections that ask for metrics at once, at most. A Prometheus keeps one; a few of them, and a
/// person, fit in.
pub const METRICS_CONNECTIONS_MAX: usize = 16;

/// How long a request for metrics may be on its way, and a connection be without one.
pub const METRICS_REQUEST_TIMEOUT: Duration = Duration::from_secs(30);

/// How long answers that are on their way at the end of a run are waited for.
pub const METRICS_GRACE: Duration = Duration::from_secs(1);

/// The longest time that may be waited for a last scrape: a day.
pub const METRICS_LINGER_SECONDS_MAX: usize = 86_400;

/// The time between two drawings of the bars; faster is not seen.
pub const BARS_INTERVAL: Duration = Duration::from_millis(100);

/// Collections that have a bar at the same time; a terminal of 24 lines keeps room for text.
pub const BARS_MAX: usize = 8;

/// Lines of a list in the summary, unless told to be verbose, so that it fits on a screen.
pub const SUMMARY_ROWS: usize = 10;

/// How often a run tells how it stands; a timeline has one point for each.
pub const SAMPLE_INTERVAL: Duration = Duration::from_secs(1);

/// How often the server is asked how it stands: `serverStatus` costs it a millisecond or two.
pub const SERVER_SAMPLE_INTERVAL: Duration = Duration::from_secs(3);

/// How often the server is asked how far index builds are, while some go on.
pub const INDEX_PROGRESS_INTERVAL: Duration = Duration::from_secs(1);

/// The work of building an index, as a share of that of inserting the documents: measured with 0.5
/// for one index over two million documents, and used for the bar of the whole run alone.
pub const INDEX_WEIGHT: f64 = 0.5;

/// How long that answer is waited for; a server in trouble has better things to do.
pub const SERVER_SAMPLE_PATIENCE: Duration = Duration::from_secs(2);

/// How often it is judged what a run waits for: longer than one answer of the server takes, and
/// short enough to follow it.
pub const BOUND_INTERVAL: Duration = Duration::from_secs(4);

/// How often a log is told what a run waits for, where that does not change.
pub const BOUND_LINE_INTERVAL: Duration = Duration::from_secs(12);

/// The shortest time of which it is judged: below it, chance decides.
pub const BOUND_TIME_MIN: Duration = Duration::from_millis(100);

/// Points of a run's timeline. An hour has one for each second; a report stays below a megabyte.
pub const TIMELINE_POINTS_MAX: usize = 3600;

/// Seconds over which the sustained peak is taken: longer than a checkpoint's write burst.
pub const PEAK_WINDOW_SECONDS: u64 = 30;

/// Connections of a probe, unless it is told: what a web application's pools come to.
pub const PROBE_CONNECTIONS: u32 = 150;

/// The most connections that may be asked for: TCP has no more ports to one address.
pub const PROBE_CONNECTIONS_MAX: u32 = 65_000;

/// Steps of a ramp, unless it is told: two for each doubling of 16, and enough for a curve.
pub const PROBE_STEPS: u32 = 8;

/// The most steps of a ramp; a step has a line in the report.
pub const PROBE_STEPS_MAX: u32 = 200;

/// How long a probe takes, without setting up connections, unless it is told.
pub const PROBE_DURATION: Duration = Duration::from_secs(60);

/// New connections of a probe in a second, unless it is told. A server starts a thread for each,
/// and its queue of those that are not taken yet holds 128 on older systems.
pub const PROBE_CONNECT_RATE: u32 = 500;

/// The share of the time between two paced requests within which each is moved, unless it is told:
/// enough that connections do not fall into step.
pub const PROBE_JITTER: f64 = 0.2;

/// How long a probe waits for an answer before its connection counts as broken: longer than any
/// queue of thousands of requests takes.
pub const PROBE_ANSWER_WITHIN: Duration = Duration::from_secs(30);

/// How long a step waits, after its end, for the answers to what was sent before: far longer than a
/// request takes where a server keeps up, and short enough that Ctrl-C is felt to end the probe.
pub const PROBE_DRAIN: Duration = Duration::from_secs(1);

/// How long looking at a collection may take; a random sample of a large one reads much of it.
pub const PROBE_LOOK_WITHIN: Duration = Duration::from_secs(600);

/// `_id`s that are read of a collection whose `_id`s are no range: 100 000 of 12 bytes are some
/// megabytes, and more than a cache hides.
pub const PROBE_IDS_MAX: i64 = 100_000;

/// Documents in a batch when a probe fills its collection: half a megabyte of points.
pub const PROBE_SEED_BATCH: usize = 10_000;

/// Files that are open besides the connections: standard streams, the event queue, those of a
/// runtime, and a report.
pub const PROBE_OTHER_FILES: u64 = 64;

/// The first and the longest wait before a lost connection is opened again.
pub const PROBE_BACKOFF: (Duration, Duration) =
    (Duration::from_millis(100), Duration::from_secs(2));

/// How often a connection is tried while connections are set up.
pub const PROBE_CONNECT_ATTEMPTS: u32 = 4;

/// How often a probe tells how it stands.
pub const PROBE_TELL_INTERVAL: Duration = Duration::from_secs(5);

const _: () = assert!(BATCH_BYTES_DEFAULT >= LARGE_DOCUMENT_BYTES);
const _: () = assert!(ARCHIVE_WAITING_BYTES_MAX >= DOCUMENT_BYTES_MAX);
const _: () = assert!(BATCH_BYTES_MAX + COMMAND_OVERHEAD_BYTES < DOCUMENT_BYTES_MAX);
const _: () = assert!(BATCH_BYTES_DEFAULT <= BATCH_BYTES_MAX);
const _: () = assert!(BATCH_DOCUMENTS_DEFAULT <= BATCH_DOCUMENTS_MAX);
