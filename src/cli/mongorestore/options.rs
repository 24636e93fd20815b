//! Every option of mongorestore 100.18, and what restorm makes of it.

use Answer::{Ignored, Refused, Same};
use Takes::{Level, List, Nothing, Number, Optional, Text};

/// An option of mongorestore.
#[derive(Clone, Copy, Debug)]
pub struct PeerOption {
    /// Its long name, without the dashes.
    pub long: &'static str,
    /// Its short name.
    pub short: Option<char>,
    /// What follows it.
    pub takes: Takes,
    /// What restorm makes of it.
    pub answer: Answer,
}

/// What follows an option.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Takes {
    /// Nothing: it is a flag, and a value is refused.
    Nothing,
    /// A text, of which the last one counts; an empty one is the same as none.
    Text,
    /// A whole number, of which the last one counts.
    Number,
    /// A text; each one counts.
    List,
    /// A text after `=`, or nothing.
    Optional,
    /// A number after `=`, or repetitions.
    Level,
}

/// What restorm makes of an option.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answer {
    /// It is taken in this spelling.
    Same,
    /// It is taken and changes nothing; why.
    Ignored(&'static str),
    /// It is refused; why, and what to use instead.
    Refused(&'static str),
}

pub(in crate::cli) const fn option(
    long: &'static str,
    short: Option<char>,
    takes: Takes,
    answer: Answer,
) -> PeerOption {
    PeerOption { long, short, takes, answer }
}

pub(in crate::cli) const KERBEROS: &str = "Kerberos (GSSAPI) is not built in; \
                        log in with SCRAM, X.509, PLAIN (LDAP) or OIDC";

const GONE: &str = "mongorestore has not written to data files since version 3.0; \
                    start a mongod on them and restore into it";

/// The options in the order of mongorestore's help, then those that it once had.
pub const OPTIONS: [PeerOption; 66] = [
    option("help", None, Nothing, Same),
    option("version", None, Nothing, Same),
    option("config", None, Text, Same),
    option("numThreads", None, Number, Ignored("threads are as many as --workers and -j need")),
    option(
        "failpoints",
        None,
        Text,
        Refused("it is for tests of mongorestore, whose releases refuse it as well"),
    ),
    option("trace", None, Nothing, Ignored("it does nothing in mongorestore either")),
    option("verbose", Some('v'), Level, Same),
    option("quiet", None, Nothing, Same),
    option("host", Some('h'), Text, Same),
    option("port", None, Text, Same),
    option("dialTimeout", None, Number, Same),
    option("socketTimeout", None, Number, Same),
    option("TCPKeepAliveSeconds", None, Number, Same),
    option("serverSelectionTimeout", None, Number, Same),
    option("compressors", None, Text, Same),
    option("ssl", None, Nothing, Same),
    option("sslCAFile", None, Text, Same),
    option("sslPEMKeyFile", None, Text, Same),
    option("sslPEMKeyPassword", None, Text, Same),
    option(
        "sslCRLFile",
        None,
        Text,
        Refused(
            "certificate revocation lists (--sslCRLFile) cannot be read; \
             mongorestore refuses them as well",
        ),
    ),
    option(
        "sslFIPSMode",
        None,
        Nothing,
        Refused("FIPS mode (--sslFIPSMode) is not built in; mongorestore refuses it as well"),
    ),
    option("tlsInsecure", None, Nothing, Same),
    option("sslAllowInvalidCertificates", None, Nothing, Same),
    option("sslAllowInvalidHostnames", None, Nothing, Same),
    option("username", Some('u'), Text, Same),
    option("password", Some('p'), Text, Same),
    option("authenticationDatabase", None, Text, Same),
    option("authenticationMechanism", None, Text, Same),
    option("awsSessionToken", None, Text, Same),
    option("gssapiServiceName", None, Text, Refused(KERBEROS)),
    option("gssapiHostName", None, Text, Refused(KERBEROS)),
    option("db", Some('d'), Text, Same),
    option("collection", Some('c'), Text, Same),
    option("uri", None, Text, Same),
    option("excludeCollection", None, List, Same),
    option("excludeCollectionsWithPrefix", None, List, Same),
    option("nsExclude", None, List, Same),
    option("nsInclude", None, List, Same),
    option("nsFrom", None, List, Same),
    option("nsTo", None, List, Same),
    option("objcheck", None, Nothing, Same),
    option("oplogReplay", None, Nothing, Same),
    option("oplogLimit", None, Text, Same),
    option("oplogFile", None, Text, Same),
    option("archive", None, Optional, Same),
    option("restoreDbUsersAndRoles", None, Nothing, Same),
    option("dir", None, Text, Same),
    option("gzip", None, Nothing, Same),
    option("drop", None, Nothing, Same),
    option("dryRun", None, Nothing, Same),
    option("writeConcern", None, Text, Same),
    option("noIndexRestore", None, Nothing, Same),
    option("convertLegacyIndexes", None, Nothing, Same),
    option("noOptionsRestore", None, Nothing, Same),
    option("keepIndexVersion", None, Nothing, Same),
    option("maintainInsertionOrder", None, Nothing, Same),
    option("numParallelCollections", Some('j'), Number, Same),
    option("numInsertionWorkersPerCollection", None, Number, Same),
    option("stopOnError", None, Nothing, Same),
    option("bypassDocumentValidation", None, Nothing, Same),
    option("preserveUUID", None, Nothing, Same),
    option("tempUsersColl", None, Text, Same),
    option("tempRolesColl", None, Text, Same),
    option("batchSize", None, Number, Same),
    option("fixDottedHashIndex", None, Nothing, Same),
    option("dbpath", None, Text, Refused(GONE)),
];

/// More options of mongorestore before 3.0, which are flags.
pub const GONE_FLAGS: [PeerOption; 2] = [
    option("directoryperdb", None, Nothing, Refused(GONE)),
    option("journal", None, Nothing, Refused(GONE)),
];
