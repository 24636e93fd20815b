//! How names of collections become names of files, and back.
//!
//! A collection's name is written as the value of an HTML form would be: a space as `+`, every byte
//! but letters, digits and `-_.~` as `%` and two hexadecimal digits. A result of more than 238
//! bytes is cut to its first 208, followed by `%24` and the SHA-1 of the whole name; 238 bytes and
//! the longest suffix stay within the 255 that file systems allow. A database's name is the name
//! of its folder as it is.

use base64::Engine;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_encode};
use sha1::{Digest, Sha1};

/// The longest encoded name, in bytes.
const STEM_BYTES_MAX: usize = 238;

/// What stays of an encoded name that is longer, in bytes.
const KEPT_BYTES: usize = 208;

/// What parts the beginning of a longer name from its hash: an encoded `$`, which no name of a
/// user's collection holds.
const CUT: &str = "%24";

/// The longest name of a database, in bytes (a server asks for fewer than 64).
const DATABASE_BYTES_MAX: usize = 63;

/// The bytes that are percent-encoded; the space is not among them, since it becomes `+`.
const ENCODED: &AsciiSet =
    &NON_ALPHANUMERIC.remove(b'-').remove(b'_').remove(b'.').remove(b'~').remove(b' ');

/// The suffixes of data files, the one to prefer first.
const DATA_SUFFIXES: [&str; 4] = [".bson", ".bson.gz", ".bson.zst", ".bin"];

/// The suffixes of metadata files, the one to prefer first.
pub const METADATA_SUFFIXES: [&str; 3] =
    [".metadata.json", ".metadata.json.gz", ".metadata.json.zst"];

/// The names under which a dump tells what it was taken from and with.
pub const PRELUDES: [&str; 3] = ["prelude.json", "prelude.json.gz", "prelude.json.zst"];

/// What a file in a dump is, by its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role<'a> {
    /// The documents of a collection.
    Data {
        /// The collection's name, encoded.
        stem: &'a str,
        /// The place of its suffix among those a collection's data can have; lower is preferred.
        rank: usize,
    },
    /// The options and indexes of a collection.
    Metadata {
        /// The collection's name, encoded.
        stem: &'a str,
        /// The place of its suffix among those a collection's metadata can have.
        rank: usize,
    },
    /// What the dump was taken from and with.
    Prelude,
    /// Not a file of a dump.
    Stray,
}

/// Tells what a file is by its name.
///
/// A hidden file is a stray one whatever its suffix: no collection's name begins with a dot, but
/// the files that macOS puts beside others (`._orders.bson`) do.
pub fn role(file_name: &str) -> Role<'_> {
    if file_name.starts_with('.') {
        return Role::Stray;
    }
    if PRELUDES.contains(&file_name) {
        return Role::Prelude;
    }
    let split = |suffixes: &[&str]| {
        suffixes
            .iter()
            .enumerate()
            .find_map(|(rank, suffix)| Some((file_name.strip_suffix(suffix)?, rank)))
    };
    if let Some((stem, rank)) = split(&DATA_SUFFIXES) {
        return Role::Data { stem, rank };
    }
    if let Some((stem, rank)) = split(&METADATA_SUFFIXES) {
        return Role::Metadata { stem, rank };
    }
    Role::Stray
}

/// Why the name of a file is not that of a collection.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NameError {
    /// A `%` is not followed by two hexadecimal digits.
    #[error("the name holds a `%` that is not followed by two hexadecimal digits")]
    Escape,
    /// The bytes are not UTF-8.
    #[error("the name is not UTF-8 once decoded")]
    Encoding,
    /// Nothing, or a zero byte in it.
    #[error("the name is empty or holds a zero byte")]
    Illegal,
}

/// The name of a collection as the beginning of a file's name.
pub fn encode(collection: &str) -> String {
    let encoded = percent_encode(collection.as_bytes(), ENCODED).to_string().replace(' ', "+");
    if encoded.len() <= STEM_BYTES_MAX {
        return encoded;
    }
    let hash = BASE64_URL_SAFE_NO_PAD.encode(Sha1::digest(collection.as_bytes()));
    format!("{}{CUT}{hash}", &encoded[..KEPT_BYTES])
}

/// The collection's name that the beginning of a file's name stands for, unless that was cut.
pub fn decode(stem: &str) -> Result<String, NameError> {
    let mut name = Vec::with_capacity(stem.len());
    let mut bytes = stem.bytes();
    while let Some(byte) = bytes.next() {
        name.push(match byte {
            b'+' => b' ',
            b'%' => {
                let mut digit = || bytes.next().and_then(hexadecimal).ok_or(NameError::Escape);
                digit()? * 16 + digit()?
            }
            other => other,
        });
    }
    let name = String::from_utf8(name).map_err(|_| NameError::Encoding)?;
    if name.is_empty() || name.contains('\0') {
        return Err(NameError::Illegal);
    }
    Ok(name)
}

fn hexadecimal(digit: u8) -> Option<u8> {
    char::from(digit).to_digit(16).and_then(|value| u8::try_from(value).ok())
}

/// Whether the beginning of a file's name was cut, so that only the metadata tells the real name.
pub fn is_cut(stem: &str) -> bool {
    let rest = || stem.get(KEPT_BYTES..)?.strip_prefix(CUT);
    stem.len() == STEM_BYTES_MAX
        && rest().is_some_and(|hash| {
            hash.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_'))
        })
}

/// Whether a server allows a database of this name.
pub fn is_database(name: &str) -> bool {
    !name.is_empty()
        && name.len() <= DATABASE_BYTES_MAX
        && !name.contains(['/', '\\', '.', ' ', '"', '$', '\0'])
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn names_are_written_as_the_peer_writes_them() {
        for (name, stem) in [
            ("orders", "orders"),
            ("with space", "with+space"),
            ("plus+and&amp", "plus%2Band%26amp"),
            ("a.b-c_d~e", "a.b-c_d~e"),
            ("sla/sh", "sla%2Fsh"),
            ("new\nline", "new%0Aline"),
            ("emoji😀", "emoji%F0%9F%98%80"),
            ("per%cent", "per%25cent"),
        ] {
            assert_eq!(encode(name), stem);
            assert_eq!(decode(stem).as_deref(), Ok(name));
        }
    }

    #[test]
    fn a_long_name_is_cut_and_hashed() {
        let name = "é".repeat(60);
        let stem = encode(&name);
        assert_eq!(stem.len(), STEM_BYTES_MAX);
        assert!(is_cut(&stem));
        // The SHA-1 of the name's 120 bytes.
        assert!(stem.ends_with("%24nJ9iCe9c7v7ujFyejfPU1plbvZs"), "{stem}");
        assert!(!is_cut(&encode(&"a".repeat(STEM_BYTES_MAX))));
        assert!(!is_cut(&encode(&format!("{}$", "a".repeat(235)))));
    }

    #[test]
    fn names_that_do_not_decode_say_why() {
        for stem in ["a%", "a%2", "a%zz", "%+1"] {
            assert_eq!(decode(stem), Err(NameError::Escape), "{stem}");
        }
        assert_eq!(decode("%FF"), Err(NameError::Encoding));
        assert_eq!(decode(""), Err(NameError::Illegal));
        assert_eq!(decode("a%00b"), Err(NameError::Illegal));
    }

    #[test]
    fn roles_are_told_by_the_last_suffix() {
        let data = |stem, rank| Role::Data { stem, rank };
        let metadata = |stem, rank| Role::Metadata { stem, rank };
        for (file_name, expected) in [
            ("a.bson", data("a", 0)),
            ("a.bson.gz", data("a", 1)),
            ("a.bson.zst", data("a", 2)),
            ("a.bin", data("a", 3)),
            ("bson.bson.bson", data("bson.bson", 0)),
            ("x.metadata.json.bson", data("x.metadata.json", 0)),
            ("a.metadata.json", metadata("a", 0)),
            ("a.metadata.json.gz", metadata("a", 1)),
            ("a.bson.metadata.json.zst", metadata("a.bson", 2)),
            ("prelude.json.gz", Role::Prelude),
            ("prelude.json.bson", data("prelude.json", 0)),
            ("a.BSON", Role::Stray),
            ("a.json", Role::Stray),
            ("._a.bson", Role::Stray),
            (".bson", Role::Stray),
        ] {
            assert_eq!(role(file_name), expected, "{file_name}");
        }
    }

    #[test]
    fn databases_have_the_names_a_server_allows() {
        for name in ["shop", "shop-2_a", "日本", &"a".repeat(63)] {
            assert!(is_database(name), "{name}");
        }
        for name in ["", ".git", "a b", "a$", "a/b", "a\\b", "a\"b", "a\0b", &"a".repeat(64)] {
            assert!(!is_database(name), "{name}");
        }
    }

    proptest! {
        #[test]
        fn an_encoded_name_decodes_to_itself(name in "[^\\x00]{1,120}") {
            let stem = encode(&name);
            prop_assert!(stem.len() <= STEM_BYTES_MAX);
            if !is_cut(&stem) {
                prop_assert_eq!(decode(&stem), Ok(name));
            }
        }

        #[test]
        fn names_of_any_length_keep_apart(a in "[a-z é%+]{1,300}", b in "[a-z é%+]{1,300}") {
            prop_assume!(a != b);
            prop_assert_ne!(encode(&a), encode(&b));
        }

        #[test]
        fn no_file_name_makes_decoding_panic(stem in any::<String>()) {
            let _ = (decode(&stem), is_cut(&stem), role(&stem));
        }
    }
}
