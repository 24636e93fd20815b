//! Every option of mongorestore 100.18, and what restorm makes of it.

use Answer::{Ignored, Later, Refused, Same};
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
    /// It is not in this version.
    Later,
}

const fn option(
    long: &'static str,
    short: Option<char>,
    takes: Takes,
    answer: Answer,
) -> PeerOption {
    PeerOption { long, short, takes, answer }
}

const GONE: &str = "mongorestore has not written to data files since version 3.0; \
                    start a mongod on them and restore into it";

/// The options in the order of mongorestore's help, then those that it once had.
pub const OPTIONS: [PeerOption; 66] = [
    option("help", None, Nothing, Same),
    option("version", None, Nothing, Same),
    option("config", None, Text, Later),
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
    option("dialTimeout", None, Number, Later),
    option("socketTimeout", None, Number, Later),
    option("TCPKeepAliveSeconds", None, Number, Later),
    option("serverSelectionTimeout", None, Number, Later),
    option("compressors", None, Text, Later),
    option("ssl", None, Nothing, Later),
    option("sslCAFile", None, Text, Later),
    option("sslPEMKeyFile", None, Text, Later),
    option("sslPEMKeyPassword", None, Text, Later),
    option("sslCRLFile", None, Text, Later),
    option("sslFIPSMode", None, Nothing, Later),
    option("tlsInsecure", None, Nothing, Later),
    option("sslAllowInvalidCertificates", None, Nothing, Later),
    option("sslAllowInvalidHostnames", None, Nothing, Later),
    option("username", Some('u'), Text, Later),
    option("password", Some('p'), Text, Later),
    option("authenticationDatabase", None, Text, Later),
    option("authenticationMechanism", None, Text, Later),
    option("awsSessionToken", None, Text, Later),
    option("gssapiServiceName", None, Text, Later),
    option("gssapiHostName", None, Text, Later),
    option("db", Some('d'), Text, Same),
    option("collection", Some('c'), Text, Same),
    option("uri", None, Text, Same),
    option("excludeCollection", None, List, Later),
    option("excludeCollectionsWithPrefix", None, List, Later),
    option("nsExclude", None, List, Later),
    option("nsInclude", None, List, Later),
    option("nsFrom", None, List, Later),
    option("nsTo", None, List, Later),
    option("objcheck", None, Nothing, Later),
    option("oplogReplay", None, Nothing, Later),
    option("oplogLimit", None, Text, Later),
    option("oplogFile", None, Text, Later),
    option("archive", None, Optional, Later),
    option("restoreDbUsersAndRoles", None, Nothing, Later),
    option("dir", None, Text, Later),
    option("gzip", None, Nothing, Later),
    option("drop", None, Nothing, Same),
    option("dryRun", None, Nothing, Same),
    option("writeConcern", None, Text, Same),
    option("noIndexRestore", None, Nothing, Same),
    option("convertLegacyIndexes", None, Nothing, Later),
    option("noOptionsRestore", None, Nothing, Later),
    option("keepIndexVersion", None, Nothing, Later),
    option("maintainInsertionOrder", None, Nothing, Same),
    option("numParallelCollections", Some('j'), Number, Same),
    option("numInsertionWorkersPerCollection", None, Number, Same),
    option("stopOnError", None, Nothing, Same),
    option("bypassDocumentValidation", None, Nothing, Same),
    option("preserveUUID", None, Nothing, Later),
    option("tempUsersColl", None, Text, Later),
    option("tempRolesColl", None, Text, Later),
    option("batchSize", None, Number, Same),
    option("fixDottedHashIndex", None, Nothing, Later),
    option("dbpath", None, Text, Refused(GONE)),
];

/// More options of mongorestore before 3.0, which are flags.
pub const GONE_FLAGS: [PeerOption; 2] = [
    option("directoryperdb", None, Nothing, Refused(GONE)),
    option("journal", None, Nothing, Refused(GONE)),
];
