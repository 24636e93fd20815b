//! Good dumps with a few bytes changed, cut off or put in: never a panic, never a hang.
//!
//! Some hundred seeds in every run; `RESTORM_SEEDS=100000 cargo test --test offline mangling` for
//! more of them.

use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use restorm::batch::{BatchLimits, ZeroTimestamps};
use restorm::command::inspect::{Depth, InspectForm, inspect};
use restorm::command::restore::{Destination, OplogOptions, RestoreOptions, Restored, restore};
use restorm::dump::writer::archive::{ArchiveWriter, ArchivedCollection};
use restorm::dump::{ArchivePlace, CollectionMetadata, Compression, Dump, Inventory, Location};
use restorm::facts::ServerFacts;
use restorm::load::{
    self, Assignment, DocumentCheck, Ending, LoadSettings, OnRejection, Stop, Workers,
};
use restorm::namespace::Namespace;
use restorm::plan::{self, Selection};
use restorm::report::{Silent, Tally, tally};
use restorm::target::null::NullTarget;

use crate::chance::{Chance, each_seed};

/// The seeds of an ordinary test run.
const SEEDS: u64 = 400;

/// A dump that takes longer than this hangs.
const TIME_MAX: Duration = Duration::from_secs(20);

/// What this process may have taken in all, other tests beside this one included.
const RESIDENT_KIBIBYTES_MAX: u64 = 512 * 1024;

/// The collections that are mangled: folder and names of data and metadata.
const GOOD: [(&str, &str, &str); 9] = [
    ("full_6.0/kitchen", "types.bson", "types.metadata.json"),
    ("full_6.0/kitchen", "indexed.bson", "indexed.metadata.json"),
    ("full_6.0/kitchen", "ids.bson", "ids.metadata.json"),
    ("full_6.0/kitchen", "collated.bson", "collated.metadata.json"),
    ("full_6.0/kitchen", "system.buckets.weather.bson", "weather.metadata.json"),
    ("full_4.2/shop", "docs.files.bson", "docs.files.metadata.json"),
    ("kitchen_6.0_gzip/kitchen", "types.bson.gz", "types.metadata.json.gz"),
    ("kitchen_6.0_gzip/kitchen", "indexed.bson.gz", "indexed.metadata.json.gz"),
    ("kitchen_6.0_gzip/kitchen", "validated.bson.gz", "validated.metadata.json.gz"),
];

/// The archives that are mangled.
const ARCHIVES: [&str; 4] =
    ["kitchen_4.2.archive", "kitchen_5.0.archive", "shop_6.0.archive.gz", "kitchen_4.4.archive"];

fn dumps() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("testdata/dumps")
}

#[test]
fn mangled_dumps_never_panic_and_never_hang() {
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_time().build().expect("a runtime");
    each_seed(SEEDS, |seed| {
        let folder = tempfile::tempdir().expect("a folder");
        make(folder.path(), &mut Chance::new(seed));
        let began = Instant::now();
        look_at(folder.path(), &runtime);
        assert!(began.elapsed() < TIME_MAX, "it took {:?}", began.elapsed());
    });
    if let Some(resident) = resident_kibibytes_max() {
        assert!(resident < RESIDENT_KIBIBYTES_MAX, "{resident} KiB were resident");
    }
}

#[test]
fn mangled_archives_never_panic_and_never_hang() {
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_time().build().expect("a runtime");
    each_seed(SEEDS, |seed| {
        let mut chance = Chance::new(seed);
        let name = *chance.one_of(&ARCHIVES);
        let bytes = std::fs::read(dumps().join(name)).expect("a good archive");
        let bytes = mangle_file(bytes, name, &mut chance);
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("mangled.archive");
        std::fs::write(&path, bytes).expect("written");
        let began = Instant::now();
        look_at_archive(&path, &runtime);
        assert!(began.elapsed() < TIME_MAX, "it took {:?}", began.elapsed());
    });
    if let Some(resident) = resident_kibibytes_max() {
        assert!(resident < RESIDENT_KIBIBYTES_MAX, "{resident} KiB were resident");
    }
}

/// Lists, inspects and loads an archive; whatever it is, each step says so and ends, and a load
/// that claims to be complete has read what there is.
fn look_at_archive(path: &Path, runtime: &tokio::runtime::Runtime) {
    let place = ArchivePlace::File(path.to_path_buf());
    let dump = Dump::at(&Location::Archive(place), None, None).expect("an archive is asked for");
    let Ok(inventory) = dump.scan() else {
        return;
    };
    let inspection = inspect(&inventory, Depth::Plain);
    let deep = inspect(&inventory, Depth::Deep);
    assert!(deep.has_problems() || !inspection.has_problems(), "plain finds what deep misses");
    let table = inspection.shown(InspectForm::Table, Some(100));
    assert!(table.contains("total of "), "{table}");
    let (tally, ending) = run(&inventory, runtime);
    let balance = tally.balance();
    assert!(balance.is_balanced(), "{balance:?}");
    assert_eq!(balance.read, balance.inserted, "the null target takes everything");
    let has_failed =
        tally.collections().iter().any(|one| matches!(one.state, tally::State::Failed(_)));
    match ending {
        Ending::Finished if !has_failed => {
            let documents: u64 = inventory
                .entries
                .iter()
                .zip(&inspection.collections)
                .filter(|(entry, _)| entry.problem.is_none())
                .filter_map(|(_, collection)| Some(collection.data.as_ref()?.documents))
                .sum();
            assert_eq!(balance.read, documents, "inspect and restore read the same documents");
        }
        Ending::Finished | Ending::Stopped(_) => assert!(inspection.has_problems(), "{table}"),
        Ending::Interrupted => panic!("nobody asked for a stop"),
    }
}

#[test]
fn mangled_users_and_oplogs_of_archives_never_panic_and_never_hang() {
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_time().build().expect("a runtime");
    let good = with_users_and_oplog();
    each_seed(SEEDS / 2, |seed| {
        let mut bytes = good.clone();
        mangle(&mut bytes, &mut Chance::new(seed));
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("mangled.archive");
        std::fs::write(&path, bytes).expect("written");
        let mut options = RestoreOptions::new(path, Destination::Null);
        options.special.oplog = Some(OplogOptions::default());
        let restored = restore(&options, Arc::new(Silent), Stop::new(), Instant::now());
        let Ok(Restored::Ran(report)) = runtime.block_on(restored) else {
            return;
        };
        assert!(report.is_balanced, "{report:?}");
        assert_eq!(report.balance.read, report.balance.inserted);
    });
}

/// A small archive, most of which is users, roles and an oplog.
fn with_users_and_oplog() -> Vec<u8> {
    let genuine = |name: &str| std::fs::read(dumps().join(name)).expect("a genuine file");
    let mut oplog = genuine("oplog_6.0/oplog.bson");
    let mut end = 0;
    while let Some(prefix) = oplog[end..].first_chunk::<4>().filter(|_| end < 4000) {
        end += usize::try_from(i32::from_le_bytes(*prefix)).expect("a length");
    }
    oplog.truncate(end);
    let parts = [
        ("admin", "system.users", genuine("full_6.0/admin/system.users.bson")),
        ("admin", "system.roles", genuine("full_6.0/admin/system.roles.bson")),
        ("admin", "system.version", genuine("full_6.0/admin/system.version.bson")),
        ("kitchen", "ids", genuine("full_6.0/kitchen/ids.bson")),
        ("", "oplog", oplog),
    ];
    let listed = parts.each_ref().map(|(database, collection, _)| ArchivedCollection {
        namespace: Namespace::new(*database, *collection),
        metadata: CollectionMetadata::default(),
    });
    let mut archive =
        ArchiveWriter::begin(Vec::new(), Compression::None, 1, None, &listed).expect("begun");
    for (place, (_, _, documents)) in parts.iter().enumerate() {
        archive.append(place, documents).expect("written");
        archive.end(place).expect("ended");
    }
    archive.finish().expect("finished")
}

/// Writes a dump of one collection, a file of which is mangled.
fn make(root: &Path, chance: &mut Chance) {
    let (folder, data, metadata) = *chance.one_of(&GOOD);
    let made = root.join("kitchen");
    std::fs::create_dir(&made).expect("a folder");
    let mangled = if chance.percent(70) { data } else { metadata };
    for name in [data, metadata] {
        let mut bytes = std::fs::read(dumps().join(folder).join(name)).expect("a good file");
        if name == mangled {
            bytes = mangle_file(bytes, name, chance);
        }
        std::fs::write(made.join(name), bytes).expect("written");
    }
}

/// Mangles the content of a compressed file as often as what it is packed in.
fn mangle_file(mut bytes: Vec<u8>, name: &str, chance: &mut Chance) -> Vec<u8> {
    let is_packed = Path::new(name).extension().is_some_and(|extension| extension == "gz");
    if !is_packed || chance.percent(40) {
        mangle(&mut bytes, chance);
        return bytes;
    }
    let mut content = Vec::new();
    flate2::read::MultiGzDecoder::new(&bytes[..]).read_to_end(&mut content).expect("good gzip");
    mangle(&mut content, chance);
    if chance.percent(30) {
        return zstd::encode_all(&content[..], 1).expect("compressed");
    }
    let mut packed = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    packed.write_all(&content).expect("compressed");
    packed.finish().expect("compressed")
}

fn mangle(bytes: &mut Vec<u8>, chance: &mut Chance) {
    for _ in 0..chance.between(1, 4) {
        if bytes.is_empty() {
            return;
        }
        let at = chance.below(bytes.len());
        match chance.below(7) {
            0 => bytes[at] ^= 1 << chance.below(8),
            1 => bytes.truncate(at),
            2 => lie(bytes, at, chance),
            3 => bytes.insert(at, u8::try_from(chance.below(256)).expect("a byte")),
            4 => drop(bytes.drain(at..bytes.len().min(at + chance.between(1, 40)))),
            5 => {
                let end = bytes.len().min(at + chance.between(1, 400));
                let again = bytes[at..end].to_vec();
                bytes.splice(at..at, again);
            }
            _ => {
                let end = bytes.len().min(at + chance.between(1, 40));
                bytes[at..end].fill(*chance.one_of(&[0x00, 0x22, 0x5B, 0x7B, 0xFF]));
            }
        }
    }
}

/// Puts a length where one may stand: of the first document, or anywhere.
fn lie(bytes: &mut [u8], at: usize, chance: &mut Chance) {
    let at = if chance.percent(30) { 0 } else { at };
    let length = *chance.one_of(&[0_i32, 1, 4, 5, -1, i32::MIN, i32::MAX, 16 << 20, 1000]);
    for (byte, lying) in bytes[at..].iter_mut().zip(length.to_le_bytes()) {
        *byte = lying;
    }
}

/// Lists, inspects, plans and loads a dump; whatever it is, each step says so and ends.
fn look_at(root: &Path, runtime: &tokio::runtime::Runtime) {
    let Ok(inventory) = Dump::locate(root, None, None).and_then(|dump| dump.scan()) else {
        return;
    };
    let inspection = inspect(&inventory, Depth::Plain);
    let deep = inspect(&inventory, Depth::Deep);
    assert!(deep.has_problems() || !inspection.has_problems(), "plain finds what deep misses");
    let table = inspection.shown(InspectForm::Table, Some(100));
    assert!(table.contains("total of "), "{table}");
    let json = inspection.shown(InspectForm::Json, None);
    let _: serde_json::Value = serde_json::from_str(&json).expect("JSON");
    let read = load(&inventory, runtime);
    let readable = inventory.entries.iter().zip(&inspection.collections);
    let inspected: u64 = readable
        .filter(|(entry, _)| entry.problem.is_none())
        .filter_map(|(_, collection)| Some(collection.data.as_ref()?.documents))
        .sum();
    assert_eq!(read, inspected, "inspect and restore read the same documents");
}

/// Loads into nothing; returns how many documents were read.
fn load(inventory: &Inventory, runtime: &tokio::runtime::Runtime) -> u64 {
    let (tally, ending) = run(inventory, runtime);
    assert!(matches!(ending, Ending::Finished), "{ending:?}");
    let balance = tally.balance();
    assert!(balance.is_balanced(), "{balance:?}");
    assert_eq!(balance.read, balance.inserted, "the null target takes everything");
    balance.read
}

fn run(inventory: &Inventory, runtime: &tokio::runtime::Runtime) -> (Tally, Ending) {
    let plan = plan::plan(inventory, Selection::default(), &ServerFacts::null());
    let _ = plan::text::describe(&plan);
    let settings = LoadSettings {
        failure_limit: None,
        memory: restorm::limits::MEMORY_DEFAULT,
        readers: 2,
        workers: Workers::Fixed(2),
        rate_limit: None,
        lag_max: None,
        batch: BatchLimits::new(50, 10_000),
        index_builds: 2,
        write_mode: restorm::target::WriteMode::Insert,
        keys: restorm::target::keys::KeyFields::default(),
        names: restorm::target::FieldNames::default(),
        zero_timestamps: ZeroTimestamps::Detoured,
        on_rejection: OnRejection::GoOn,
        document_check: DocumentCheck::Extent,
        retry_for: Duration::from_secs(1),
    };
    let load = load::load(Assignment {
        plan,
        target: Arc::new(NullTarget),
        settings,
        observer: Arc::new(Silent),
        ledger: None,
        salvage: None,
        rejects: None,
        sums: None,
        stop: Stop::new(),
        began: Instant::now(),
    });
    let limited = runtime.block_on(async { tokio::time::timeout(TIME_MAX, load).await });
    limited.expect("the load ends")
}

/// The most memory that this process has had, where the system tells.
fn resident_kibibytes_max() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    line.trim().trim_end_matches(" kB").parse().ok()
}
