//! Which acknowledged writes of a server can no longer be lost.
//!
//! A replica set says it by itself: each reply to a write carries its opTime, and `hello` the
//! opTime up to which a majority has everything in its journal. A standalone server is asked for a
//! write that waits for the journal, which brings all earlier ones there as well (`WiredTiger`
//! has one log); its process has an identity, which changes when it is started again.

use bson::oid::ObjectId;
use bson::raw::cstr;
use bson::{Bson, Document, RawBsonRef, RawDocumentBuf, doc, rawdoc};

use crate::facts::{ServerFacts, ServerVersion, Topology};
use crate::namespace::Namespace;
use crate::target::durable::{Acknowledgement, Horizon, Mark};
use crate::target::mongo::MongoTarget;
use crate::target::{Fault, TargetError};

/// `NamespaceExists`.
const EXISTS: i32 = 48;

/// `Unauthorized`.
const UNAUTHORIZED: i32 = 13;

/// What an acknowledgement with this write concern is worth on this server.
pub(super) fn of(concern: &RawDocumentBuf, facts: &ServerFacts) -> Acknowledgement {
    let journal = concern.get_bool("j").ok();
    let is_majority = matches!(concern.get("w"), Ok(Some(RawBsonRef::String("majority"))));
    let is_durable = match facts.topology {
        Topology::Standalone => journal == Some(true) || (is_majority && journal.is_none()),
        Topology::ReplicaSet => is_majority && journal != Some(false),
        Topology::Sharded | Topology::Null => true,
    };
    // Others speak of opTimes and journals differently or not at all.
    if is_durable || !facts.product.is_mongodb() {
        Acknowledgement::Durable
    } else {
        Acknowledgement::Volatile
    }
}

/// The write concern of a server that cannot tell what it has lost, as a router of what its shards
/// have: a majority, whatever else was asked for. Says whether that is more than was asked for.
pub(super) fn raised(concern: RawDocumentBuf, facts: &ServerFacts) -> (RawDocumentBuf, bool) {
    let is_majority = matches!(concern.get("w"), Ok(Some(RawBsonRef::String("majority"))));
    let journal = concern.get_bool("j").ok();
    let (cannot_tell, is_certain) = match facts.topology {
        Topology::Sharded => (true, is_majority && journal != Some(false)),
        // Before 4.4 nothing tells a process from the one that was started after it.
        Topology::Standalone => {
            (facts.version < ServerVersion::new(4, 4, 0), journal == Some(true))
        }
        Topology::ReplicaSet | Topology::Null => (false, true),
    };
    if is_certain || !cannot_tell || !facts.product.is_mongodb() {
        return (concern, false);
    }
    (certain(&concern), true)
}

/// A write concern after which nothing can be lost, with the patience of another.
pub(super) fn certain(concern: &RawDocumentBuf) -> RawDocumentBuf {
    let mut certain = rawdoc! { "w": "majority", "j": true };
    if let Ok(Some(wtimeout)) = concern.get("wtimeout") {
        certain.append(cstr!("wtimeout"), bson::RawBson::from(wtimeout));
    }
    certain
}

/// The point in history that a reply to a write names.
pub(super) fn mark(reply: &Document) -> Option<Mark> {
    op_time(reply.get_document("opTime").ok()?)
}

fn op_time(op_time: &Document) -> Option<Mark> {
    let time = op_time.get_timestamp("ts").ok()?;
    let term = op_time.get_i64("t").ok()?;
    let time = (u64::from(time.time) << 32) | u64::from(time.increment);
    Some(Mark { term, time })
}

/// The incarnation of a server: its process, and for a replica set the election of its primary.
pub(super) fn incarnation(hello: &Document) -> String {
    let process = hello.get_document("topologyVersion").ok();
    let process = process.and_then(|version| version.get_object_id("processId").ok());
    let election = hello.get("electionId").and_then(Bson::as_object_id);
    let text = |id: Option<ObjectId>| id.map_or_else(String::new, ObjectId::to_hex);
    format!("{}/{}", text(process), text(election))
}

impl MongoTarget {
    /// Asks which acknowledged writes are safe; `among` is a collection that exists.
    pub(super) async fn ask_horizon(&self, among: &Namespace) -> Result<Horizon, TargetError> {
        if self.topology == Topology::Standalone {
            self.flush_journal(among).await?;
            let hello = self.hello().await?;
            return Ok(Horizon { server: incarnation(&hello), durable: None });
        }
        let hello = self.hello().await?;
        if !["isWritablePrimary", "ismaster"]
            .iter()
            .any(|field| hello.get_bool(field).unwrap_or(false))
        {
            return Err(TargetError {
                fault: Fault::Unreachable,
                code: None,
                labels: Vec::new(),
                message: "the replica set has no primary at the moment".to_owned(),
            });
        }
        let durable = hello.get_document("lastWrite").ok();
        let durable = durable.and_then(|last| last.get_document("majorityOpTime").ok());
        Ok(Horizon { server: incarnation(&hello), durable: durable.and_then(op_time) })
    }

    /// Has everything written so far put into the journal, by a write that changes nothing: a
    /// deletion that finds nothing, or where that is not allowed, the creation of what is there.
    async fn flush_journal(&self, among: &Namespace) -> Result<(), TargetError> {
        let concern = doc! { "w": 1, "j": true };
        let delete = doc! {
            "delete": among.collection(),
            "deletes": [ { "q": { "_id": "restorm: nothing", "$nor": [ {} ] }, "limit": 1 } ],
            "writeConcern": concern.clone(),
        };
        match self.run(among.database(), delete).await {
            Err(error) if error.code == Some(UNAUTHORIZED) => {}
            other => return other.map(drop),
        }
        let create = doc! { "create": among.collection(), "writeConcern": concern };
        match self.run(among.database(), create).await {
            Err(error) if error.code == Some(EXISTS) => Ok(()),
            other => other.map(drop),
        }
    }

    /// What the server says of itself.
    pub(super) async fn hello(&self) -> Result<Document, TargetError> {
        /// Servers before 5.0 do not know `hello`.
        const COMMAND_NOT_FOUND: i32 = 59;
        match self.run("admin", doc! { "hello": 1 }).await {
            Err(error) if error.code == Some(COMMAND_NOT_FOUND) => {
                self.run("admin", doc! { "isMaster": 1 }).await
            }
            other => other,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::facts::Product;
    use bson::Timestamp;

    #[test]
    fn what_an_acknowledgement_is_worth_depends_on_the_server() {
        use Acknowledgement::{Durable, Volatile};
        use Topology::{ReplicaSet, Sharded, Standalone};
        for (topology, concern, expected) in [
            (Standalone, rawdoc! { "w": "majority" }, Durable),
            (Standalone, rawdoc! { "w": 1_i64 }, Volatile),
            (Standalone, rawdoc! { "w": 1_i64, "j": true }, Durable),
            (Standalone, rawdoc! { "w": "majority", "j": false }, Volatile),
            (ReplicaSet, rawdoc! { "w": "majority" }, Durable),
            (ReplicaSet, rawdoc! { "w": "majority", "j": false }, Volatile),
            (ReplicaSet, rawdoc! { "w": 2_i64, "j": true }, Volatile),
            (Sharded, rawdoc! { "w": "majority" }, Durable),
        ] {
            let facts = ServerFacts { topology, ..ServerFacts::null() };
            assert_eq!(of(&concern, &facts), expected, "{topology:?} {concern:?}");
            let facts = ServerFacts { product: Product::FerretDb, ..facts };
            assert_eq!(of(&concern, &facts), Durable);
        }
    }

    #[test]
    fn a_server_that_cannot_tell_is_asked_for_a_majority() {
        let facts = ServerFacts { topology: Topology::Sharded, ..ServerFacts::null() };
        let (concern, is_raised) = raised(rawdoc! { "w": 1_i64, "wtimeout": 5_i64 }, &facts);
        assert_eq!(concern, rawdoc! { "w": "majority", "j": true, "wtimeout": 5_i64 });
        assert!(is_raised);
        assert!(!raised(rawdoc! { "w": "majority" }, &facts).1);
        let set = ServerFacts { topology: Topology::ReplicaSet, ..facts.clone() };
        assert!(!raised(rawdoc! { "w": 1_i64 }, &set).1);
        for (version, expected) in
            [(ServerVersion::new(4, 2, 6), true), (ServerVersion::new(4, 4, 2), false)]
        {
            let alone = ServerFacts { topology: Topology::Standalone, version, ..facts.clone() };
            assert_eq!(raised(rawdoc! { "w": 1_i64 }, &alone).1, expected);
        }
    }

    #[test]
    fn points_and_incarnations_are_read_from_replies() {
        let ts = Timestamp { time: 3, increment: 7 };
        let reply = doc! { "n": 1, "opTime": { "ts": ts, "t": 5_i64 } };
        assert_eq!(mark(&reply), Some(Mark { term: 5, time: (3 << 32) + 7 }));
        assert_eq!(mark(&doc! { "n": 1 }), None);
        let (process, other) = (ObjectId::new(), ObjectId::new());
        let hello = |id: ObjectId| doc! { "topologyVersion": { "processId": id } };
        assert_ne!(incarnation(&hello(process)), incarnation(&hello(other)));
        assert_eq!(incarnation(&doc! {}), "/");
    }
}
