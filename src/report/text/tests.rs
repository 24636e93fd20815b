//! What a summary looks like, to the letter.

use super::*;
use crate::report::value::samples;

const PLAIN: Style = Style { colour: Colour::Never, width: 100, verbosity: Verbosity::Normal };

#[test]
fn conflicts_are_told_among_the_rejected() {
    let mut report = samples::with_failures();
    report.balance.conflicts = 2;
    let text = summary(&report, &PLAIN);
    assert!(text.contains("  rejected   8 documents, 2 of them conflicts, by the"), "{text}");
}

#[test]
fn a_clean_run() {
    assert_eq!(
        summary(&samples::clean(), &PLAIN),
        "\
OK: 3 collections restored, 1,234,560 documents inserted in 47 s

  from       dump, 1.23 GB on disk, taken from server 7.0.2
  to         mongodb://127.0.0.1:27017, server 8.0.4
  inserted   1,234,560 documents, 30,864 inserts/s on average, 48,456 at peak
  sent       1.23 GB, 30.8 MB/s on average, 40.5 MB/s at peak
  time       47 s: 40 s in data, 7.0 s more in indexes
  indexes    2 of 2 built, 14 s of build time in all
  workers    adaptive, 2 to 8, 4 at the end
  latency    p50 20 ms, p99 20 ms, max 20 ms from sending a batch to its answer
  bound by   indexes: 7.0 s went by after the last document
             more memory for index builds on the server (maxIndexBuildMemoryUsageMegabytes), or more
             of them at once (--parallel-index-builds)

  collection   documents    bytes  inserts/s  time  indexes
  shop.orders  1,000,000  1.10 GB     25,000  40 s        2
  shop.items     234,560   130 MB     23,456  10 s        0
  shop.recent       view

  skipped    1 on purpose (-v lists them)

  balance    1,234,560 read = 1,234,560 inserted + 0 already there + 0 rejected + 0 unsent
  exit       0: everything planned was restored
"
    );
}

#[test]
fn a_run_with_failures() {
    assert_eq!(
        summary(&samples::with_failures(), &PLAIN),
        "\
FINISHED WITH FAILURES: 8 documents rejected, 1 index not built; 9,990 documents inserted and 2
  already there in 2.5 s

  from       dump, 1.00 MB on disk, taken from server 7.0.2
  to         mongodb://127.0.0.1:27017, server 8.0.4
  inserted   9,990 documents, 4,343 inserts/s on average, 9,990 at peak
  sent       1.00 MB, 435 kB/s on average, 1.00 MB/s at peak
  time       2.5 s: 2.3 s in data, 0 s more in indexes
  indexes    1 of 2 built, 200 ms of build time in all
  latency    p50 20 ms, p99 20 ms, max 20 ms from sending a batch to its answer
  retries    1

  collection   documents   bytes  inserts/s   time  indexes
  shop.orders      8,995  900 kB      4,734  1.9 s   1 of 2
  shop.items         995  100 kB        524  1.9 s        0

  rejected   8 documents, by the server's code
    121 DocumentValidationFailure: 1 document
      shop.items _id {\"$numberLong\":\"77\"}: Document failed\\nvalidation
    11000 DuplicateKey: 7 documents
      shop.orders _id {\"$numberLong\":\"0\"}: E11000 duplicate key error
      shop.orders _id {\"$numberLong\":\"1\"}: E11000 duplicate key error
      shop.orders _id {\"$numberLong\":\"2\"}: E11000 duplicate key error
      shop.orders _id {\"$numberLong\":\"3\"}: E11000 duplicate key error
      shop.items _id {\"$numberLong\":\"0\"}: E11000 duplicate key error
      and 2 more

  not built  1 index
    shop.orders number_1: two documents have the same key (server code 11000)

  notes      2
    shop.orders: the index when_1 had the unknown option safe, which was left out
    the target is a standalone server

  balance    10,000 read = 9,990 inserted + 2 already there + 8 rejected + 0 unsent
  exit       3: finished, but some documents or indexes failed
"
    );
}

#[test]
fn an_interrupted_run() {
    assert_eq!(
        summary(&samples::interrupted(), &PLAIN),
        "\
INTERRUPTED after 5.3 s at 25 %: 10,000 documents inserted, batches in flight were finished

  from       dump, 3.00 MB on disk, taken from server 7.0.2
  to         mongodb://127.0.0.1:27017, server 8.0.4
  inserted   10,000 documents, 1,961 inserts/s on average, 2,000 at peak
  sent       1.00 MB, 196 kB/s on average, 200 kB/s at peak
  time       5.3 s: 5.1 s in data, 0 s more in indexes
  indexes    0 of 1 built, 0 s of build time in all
  latency    p50 20 ms, p99 20 ms, max 20 ms from sending a batch to its answer

  collection   documents    bytes  inserts/s  time  indexes  state
  shop.orders     10,000  1.00 MB          -     -   0 of 1  incomplete
  shop.items           0      0 B          -     -        0  not begun

  balance    10,500 read = 10,000 inserted + 0 already there + 0 rejected + 500 unsent
  exit       130: interrupted; batches in flight were finished and reported
"
    );
}

#[test]
fn a_run_with_a_failed_collection() {
    assert_eq!(
        summary(&samples::failed_collection(), &PLAIN),
        "\
NOT COMPLETE: 1 of 2 collections not restored completely, 1 file could not be used; 10,010 documents
  inserted in 11 s

  from       dump, 1.00 MB on disk, taken from server 7.0.2
  to         mongodb://127.0.0.1:27017, server 8.0.4
  inserted   10,010 documents, 902 inserts/s on average, 2,510 at peak
  sent       1.00 MB, 90.2 kB/s on average, 251 kB/s at peak
  time       11 s: 11 s in data, 0 s more in indexes
  indexes    1 of 1 built, 7.0 s of build time in all
  latency    p50 20 ms, p99 20 ms, max 20 ms from sending a batch to its answer

  collection   documents    bytes  inserts/s   time  indexes  state
  shop.items          10  1.00 kB          -      -        0  failed
  shop.orders     10,000  1.00 MB      2,500  4.0 s        1

  failed     1 collection could not be restored completely
    shop.items: the file ends inside a document, in dump/shop/items.bson, at byte 1024

  skipped    1 could not be used, 1 on purpose (-v lists them)
    dump/shop/secret.bson: permission denied

  balance    10,010 read = 10,010 inserted + 0 already there + 0 rejected + 0 unsent
  exit       1: stopped by an error, or a collection could not be restored completely
"
    );
}

#[test]
fn a_stopped_run_says_why_first() {
    let text = summary(&samples::stopped(), &PLAIN);
    let first = text.lines().next().expect("a line");
    assert_eq!(first, "STOPPED after 200 ms: no answer from the server (server code 11600)");
    assert!(text.contains("not begun"), "{text}");
    assert!(text.ends_with(
        "exit       1: stopped by an error, or a collection could not be restored completely\n"
    ));
}

#[test]
fn counts_that_do_not_add_up_are_shouted() {
    let text = summary(&samples::unbalanced(), &PLAIN);
    assert!(text.starts_with("INTERNAL ERROR: the counts do not add up"), "{text}");
    assert!(text.contains("1,001 read is NOT 1,000 inserted"), "{text}");
}

#[test]
fn a_stray_file_is_listed_when_asked_for() {
    let style = Style { verbosity: Verbosity::Verbose, ..PLAIN };
    let text = summary(&samples::clean(), &style);
    assert!(text.contains("    dump/README: not a file of a dump\n"), "{text}");
}

#[test]
fn only_the_verdict_has_a_colour() {
    let style = Style { colour: Colour::Always, ..PLAIN };
    let text = summary(&samples::clean(), &style);
    let plain = summary(&samples::clean(), &PLAIN);
    assert!(text.starts_with("\x1b[1;32mOK\x1b[0m: 3 collections"), "{text}");
    assert_eq!(text.replace("\x1b[1;32m", "").replace("\x1b[0m", ""), plain);
    assert!(!plain.contains('\x1b'));
}

#[test]
fn lines_fit_a_narrow_terminal_and_lose_nothing() {
    for report in samples::all() {
        let text = summary(&report, &Style { width: 72, ..PLAIN });
        for line in text.lines() {
            assert!(columns(line) <= 72, "{line}");
        }
    }
    assert_eq!(wrap("  to  one two three", 12, 6), "  to  one\n      two\n      three");
    assert_eq!(wrap("OK: aaaaaaaaaaaaaaaaaaaa b", 10, 2), "OK:\n  aaaaaaaaaaaaaaaaaaaa\n  b");
}

#[test]
fn a_thousand_collections_are_not_all_listed() {
    let mut report = samples::clean();
    let one = report.collections[0].clone();
    report.collections.extend(std::iter::repeat_n(one, 1000));
    let text = summary(&report, &PLAIN);
    assert!(text.contains("  and 993 collections more\n"), "{text}");
    assert!(text.lines().count() <= 31, "{text}");
}

#[test]
fn users_and_the_oplog_have_lines_of_their_own() {
    let text = summary(&samples::with_users_and_oplog(), &Style { width: 300, ..PLAIN });
    for line in [
        "2 users and 1 role NOT restored: cannot be merged: not authorized",
        "shop.ann, shop.bob, shop.clerk",
        "1,200 entries with 1,250 operations applied, 3 of the source alone left out",
        "NOT COMPLETE: users and roles not restored",
    ] {
        assert!(text.contains(line), "{line}: {text}");
    }
}

#[test]
fn lost_stretches_are_listed_with_their_file_and_bytes() {
    let text = summary(&samples::with_damage(), &Style { width: 300, ..PLAIN });
    for line in [
        "  lost       3 stretches, 110 B, kept in dump.salvage",
        "    shop.orders: dump/shop/orders.bson from byte 100 to byte 184, 84 B: a document claims",
        "    shop.orders: dump/shop/orders.bson from byte 900 to its end, 10 B: a document claims",
        "    dump/shop/orders.bson from byte 1200 to byte 1216, 16 B: a document claims",
    ] {
        assert!(text.contains(line), "{line}\n{text}");
    }
}
