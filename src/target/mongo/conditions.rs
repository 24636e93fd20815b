//! What a server says of itself before anything is done to it.

use bson::{Document, doc};
use futures_util::TryStreamExt;

use crate::facts::conditions::{Conditions, JournalUse};
use crate::facts::privileges::Login;
use crate::facts::{Product, ServerFacts, ServerVersion, Topology};
use crate::namespace::Namespace;
use crate::target::TargetError;
use crate::target::mongo::{MongoTarget, errors};

/// `Unauthorized`.
const UNAUTHORIZED: i32 = 13;

/// From this version on every server has a journal (SERVER-64073).
const WITH_JOURNAL: ServerVersion = ServerVersion::new(6, 1, 0);

impl MongoTarget {
    /// Asks whether the server has a journal, and settles what an acknowledgement is worth. Without
    /// one nothing can wait for it, and a majority that is confirmed stands in a checkpoint.
    pub async fn with_journal_of<'a>(
        mut self,
        facts: &ServerFacts,
        mut databases: impl Iterator<Item = &'a str>,
    ) -> Self {
        let may_lack = facts.product == Product::MongoDb
            && facts.topology != Topology::Sharded
            && facts.version < WITH_JOURNAL;
        if may_lack {
            self.has_journal = self.asks_for_journal(databases.next()).await;
        }
        self.acknowledge(facts);
        self
    }

    async fn asks_for_journal(&self, database: Option<&str>) -> bool {
        let Ok(options) = self.run("admin", doc! { "getCmdLineOpts": 1 }).await else {
            return self.tries_journal(database).await;
        };
        let storage =
            options.get_document("parsed").and_then(|parsed| parsed.get_document("storage"));
        let journal = storage.and_then(|storage| storage.get_document("journal"));
        journal.and_then(|journal| journal.get_bool("enabled")).unwrap_or(true)
    }

    /// Whether a deletion that finds nothing may wait for the journal: what users can ask who may
    /// not see the command line.
    async fn tries_journal(&self, database: Option<&str>) -> bool {
        let Some(database) = database else {
            return true;
        };
        let delete = doc! {
            "delete": "restorm.nothing",
            "deletes": [ { "q": { "_id": "restorm: nothing", "$nor": [ {} ] }, "limit": 1 } ],
            "writeConcern": { "w": 1, "j": true },
        };
        let refused = self.run(database, delete).await.err();
        !refused.is_some_and(|error| error.message.contains("does not have journaling"))
    }

    /// Asks for what bears on a plan; a question that is not answered leaves its answer out.
    /// `databases` are those that are restored to, `indexed` the collections whose indexes matter.
    pub async fn conditions<'a>(
        &self,
        facts: &ServerFacts,
        databases: impl Iterator<Item = &'a str>,
        indexed: &[Namespace],
    ) -> Result<Conditions, TargetError> {
        let is_read_only = self.hello().await?.get_bool("readOnly").unwrap_or(false);
        let mut conditions =
            Conditions { is_read_only, journal: self.journal_use(), ..Conditions::default() };
        if !facts.product.is_mongodb() {
            return Ok(conditions);
        }
        conditions.login = self.login().await;
        let list = doc! { "listDatabases": 1, "nameOnly": true };
        let listed = self.run("admin", list).await.unwrap_or_default();
        let listed = listed.get_array("databases").map(Vec::as_slice).unwrap_or_default();
        let names = listed.iter().filter_map(|one| one.as_document()?.get_str("name").ok());
        conditions.databases = names.map(str::to_owned).collect();
        conditions.free_bytes = self.free_bytes(facts, databases, &conditions.databases).await;
        for namespace in indexed {
            if let Ok(indexes) = self.indexes(namespace).await {
                conditions.indexes.push((namespace.clone(), indexes));
            }
        }
        Ok(conditions)
    }

    fn journal_use(&self) -> JournalUse {
        let asked = self.write_concern.get_bool("j").ok();
        let is_majority = self.write_concern.get_str("w").is_ok_and(|w| w == "majority");
        match (self.has_journal, asked) {
            (false, Some(true)) => JournalUse::Refused,
            (false, None) if is_majority => JournalUse::Checkpoints,
            _ => JournalUse::Fits,
        }
    }

    /// The user whose rights the server enforces.
    async fn login(&self) -> Option<Login> {
        let command = doc! { "connectionStatus": 1, "showPrivileges": true };
        let login = Login::read(&self.run("admin", command).await.ok()?)?;
        self.enforces_rights(&login).await.then_some(login)
    }

    /// Whether rights are enforced. A server that enforces none may have users all the same, and
    /// tells its command line to everybody.
    async fn enforces_rights(&self, login: &Login) -> bool {
        let Ok(options) = self.run("admin", doc! { "getCmdLineOpts": 1 }).await else {
            return true;
        };
        let parsed = options.get_document("parsed");
        let security = parsed.and_then(|parsed| parsed.get_document("security"));
        login.privileges.allow_on_cluster("getCmdLineOpts")
            && security.is_ok_and(|security| {
                let is_enabled = security.get_str("authorization").is_ok_and(|on| on == "enabled");
                let has_key =
                    ["keyFile", "clusterAuthMode"].map(|name| security.contains_key(name));
                is_enabled || has_key.contains(&true)
            })
    }

    /// The bytes free in the file system of the server's data. Only a database that exists is
    /// told them, and one with few collections costs least.
    async fn free_bytes<'a>(
        &self,
        facts: &ServerFacts,
        databases: impl Iterator<Item = &'a str>,
        existing: &[String],
    ) -> Option<u64> {
        let collections = |database: &str| {
            facts.existing.iter().filter(|one| one.namespace.database() == database).count()
        };
        let there = databases.filter(|name| existing.iter().any(|one| one == name));
        let smallest = there.min_by_key(|name| collections(name));
        for database in ["admin"].into_iter().chain(smallest) {
            let reply = match self.run(database, doc! { "dbStats": 1 }).await {
                Err(error) if error.code == Some(UNAUTHORIZED) => continue,
                other => other.ok()?,
            };
            let total = number(&reply, "fsTotalSize").filter(|total| *total > 0);
            if let (Some(total), Some(used)) = (total, number(&reply, "fsUsedSize")) {
                return Some(total.saturating_sub(used));
            }
        }
        None
    }

    async fn indexes(&self, namespace: &Namespace) -> Result<Vec<Document>, TargetError> {
        let command = doc! { "listIndexes": namespace.collection() };
        let database = self.client().database(namespace.database());
        let cursor =
            database.run_cursor_command(command).await.map_err(|error| errors::of(&error))?;
        cursor.try_collect().await.map_err(|error| errors::of(&error))
    }
}

/// A number of bytes, which servers send as whole numbers or as doubles.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "sizes are positive and far below the limit"
)]
fn number(reply: &Document, field: &str) -> Option<u64> {
    match reply.get(field)? {
        bson::Bson::Int32(number) => u64::try_from(*number).ok(),
        bson::Bson::Int64(number) => u64::try_from(*number).ok(),
        bson::Bson::Double(number) => Some(*number as u64),
        _ => None,
    }
}
