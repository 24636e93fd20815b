//! Compression on the wire: which compressor is used.

use crate::program::Program;
use crate::support::Server;
use crate::support::dump::genuine;
use mongodb::bson::{Document, doc};

/// The bytes that the server has decompressed with this compressor so far.
fn decompressed(server: &Server, compressor: &str) -> i64 {
    let status = server.run("admin", doc! { "serverStatus": 1 });
    let bytes = |status: &Document| {
        let compression = status.get_document("network").ok()?.get_document("compression").ok()?;
        compression
            .get_document(compressor)
            .ok()?
            .get_document("decompressor")
            .ok()?
            .get_i64("bytesOut")
            .ok()
    };
    bytes(&status).unwrap_or(0)
}

#[test]
fn each_compressor_carries_the_documents() {
    let server = Server::private(&[]);
    let file = genuine("full_6.0/shop/orders.bson");
    let size = i64::try_from(file.metadata().unwrap().len()).unwrap();
    let run = |arguments: &[&str]| {
        let names = ["snappy", "zlib", "zstd"];
        let before = names.map(|name| decompressed(&server, name));
        let finished = Program::restorm(&["restore", "--drop"]).arg(&file).args(arguments).run();
        assert_eq!(finished.status, Some(0), "{arguments:?}: {}", finished.stderr);
        let mut used = Vec::new();
        for (name, before) in names.into_iter().zip(before) {
            if decompressed(&server, name) - before > size {
                used.push(name);
            }
        }
        used
    };
    let address = server.uri().trim_start_matches("mongodb://");
    for name in ["snappy", "zlib", "zstd"] {
        assert_eq!(run(&["-h", address, "--compressors", name]), [name]);
        let uri = format!("{}/?compressors={name}", server.uri());
        assert_eq!(run(&["--uri", &uri]), [name]);
    }
    // The first one in the list that both know.
    assert_eq!(run(&["-h", address, "--compressors", "zstd,snappy"]), ["zstd"]);
    for list in [&[][..], &["--compressors", "none"]] {
        assert_eq!(run(&[&["-h", address], list].concat()), [""; 0]);
    }
    let finished = Program::restorm(&["restore"])
        .arg(&file)
        .args(&["-h", address, "--compressors", "lzma"])
        .run();
    assert_eq!(finished.status, Some(2), "{}", finished.stderr);
    assert!(finished.stderr.contains("lzma"), "{}", finished.stderr);
}
