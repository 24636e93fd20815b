//! Who is logged in at a server, and what that user may do there.
//!
//! The rules by which a privilege covers a collection are those of the server
//! (`authorization_session_impl.cpp`, `buildResourceSearchList`).

use std::collections::{BTreeMap, BTreeSet};

use bson::{Bson, Document};

use crate::namespace::{BUCKETS_PREFIX, Namespace};

/// A user and what it may do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Login {
    /// Its name.
    pub user: String,
    /// The database that it belongs to.
    pub database: String,
    /// What it may do, by all its roles together.
    pub privileges: Privileges,
}

impl Login {
    /// Reads the answer to `connectionStatus` with `showPrivileges`; nothing where nobody is logged
    /// in or the server does not tell privileges.
    pub fn read(status: &Document) -> Option<Self> {
        let info = status.get_document("authInfo").ok()?;
        let user = info.get_array("authenticatedUsers").ok()?.first()?.as_document()?;
        let privileges = info.get_array("authenticatedUserPrivileges").ok()?;
        Some(Self {
            user: user.get_str("user").ok()?.to_owned(),
            database: user.get_str("db").ok()?.to_owned(),
            privileges: Privileges::read(privileges),
        })
    }
}

/// Actions by what they may be done to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Privileges {
    grants: BTreeMap<Resource, BTreeSet<String>>,
}

/// What a privilege covers; an empty name stands for any.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Resource {
    Anything,
    Cluster,
    Collection(String, String),
    Buckets(String, String),
}

impl Resource {
    fn read(resource: &Document) -> Option<Self> {
        let is = |name: &str| resource.get_bool(name).unwrap_or(false);
        let text = |name: &str| resource.get_str(name).ok().map(str::to_owned);
        if is("anyResource") {
            return Some(Self::Anything);
        }
        if is("cluster") {
            return Some(Self::Cluster);
        }
        if let Some(buckets) = text("system_buckets") {
            return Some(Self::Buckets(text("db").unwrap_or_default(), buckets));
        }
        Some(Self::Collection(text("db")?, text("collection")?))
    }
}

/// The action that stands for all of them.
const ANY_ACTION: &str = "anyAction";

impl Privileges {
    /// Reads a list of privileges; what is not understood grants nothing.
    pub fn read(privileges: &[Bson]) -> Self {
        let mut grants: BTreeMap<Resource, BTreeSet<String>> = BTreeMap::new();
        for privilege in privileges.iter().filter_map(Bson::as_document) {
            let resource = privilege.get_document("resource").ok().and_then(Resource::read);
            let (Some(resource), Ok(actions)) = (resource, privilege.get_array("actions")) else {
                continue;
            };
            let actions = actions.iter().filter_map(Bson::as_str).map(str::to_owned);
            grants.entry(resource).or_default().extend(actions);
        }
        Self { grants }
    }

    /// Whether the action may be done to the collection.
    pub fn allow(&self, action: &str, namespace: &Namespace) -> bool {
        covering(namespace).any(|resource| self.grants_action(&resource, action))
    }

    /// Whether the action may be done to the server as a whole.
    pub fn allow_on_cluster(&self, action: &str) -> bool {
        [Resource::Anything, Resource::Cluster]
            .iter()
            .any(|resource| self.grants_action(resource, action))
    }

    /// Whether everything may be done to everything.
    pub fn allow_all(&self) -> bool {
        self.grants_action(&Resource::Anything, ANY_ACTION)
    }

    fn grants_action(&self, resource: &Resource, action: &str) -> bool {
        self.grants
            .get(resource)
            .is_some_and(|actions| actions.contains(action) || actions.contains(ANY_ACTION))
    }
}

/// The resources that a collection belongs to. Names with `system.` in front are covered by
/// their own name only, and those of `local` and `config` not by a privilege on any database.
fn covering(namespace: &Namespace) -> impl Iterator<Item = Resource> {
    let (database, collection) = (namespace.database(), namespace.collection());
    let named = |database: &str, collection: &str| {
        Resource::Collection(database.to_owned(), collection.to_owned())
    };
    let mut covering = vec![Resource::Anything, named(database, collection), named("", collection)];
    if !namespace.is_system() {
        covering.push(named(database, ""));
        if !matches!(database, "local" | "config") {
            covering.push(named("", ""));
        }
    }
    if let Some(series) = collection.strip_prefix(BUCKETS_PREFIX) {
        for (database, series) in [("", ""), (database, ""), ("", series), (database, series)] {
            covering.push(Resource::Buckets(database.to_owned(), series.to_owned()));
        }
    }
    covering.into_iter()
}

#[cfg(test)]
mod tests {
    use super::*;
    use bson::doc;

    fn privileges(list: Vec<(Document, &[&str])>) -> Privileges {
        let list: Vec<Bson> = list
            .into_iter()
            .map(|(resource, actions)| {
                Bson::Document(doc! { "resource": resource, "actions": actions.to_vec() })
            })
            .collect();
        Privileges::read(&list)
    }

    #[test]
    fn a_privilege_covers_what_the_server_says_it_covers() {
        let buckets = "system.buckets.weather";
        for (resource, database, collection, expected) in [
            (doc! { "db": "shop", "collection": "orders" }, "shop", "orders", true),
            (doc! { "db": "shop", "collection": "orders" }, "shop", "other", false),
            (doc! { "db": "shop", "collection": "orders" }, "copy", "orders", false),
            (doc! { "db": "shop", "collection": "" }, "shop", "orders", true),
            (doc! { "db": "shop", "collection": "" }, "copy", "orders", false),
            (doc! { "db": "shop", "collection": "" }, "shop", "system.js", false),
            (doc! { "db": "shop", "collection": "system.js" }, "shop", "system.js", true),
            (doc! { "db": "shop", "collection": "" }, "shop", buckets, false),
            (doc! { "db": "", "collection": "orders" }, "shop", "orders", true),
            (doc! { "db": "", "collection": "system.js" }, "shop", "system.js", true),
            (doc! { "db": "", "collection": "" }, "shop", "orders", true),
            (doc! { "db": "", "collection": "" }, "shop", "system.js", false),
            (doc! { "db": "", "collection": "" }, "local", "orders", false),
            (doc! { "db": "", "collection": "" }, "config", "orders", false),
            (doc! { "db": "local", "collection": "" }, "local", "orders", true),
            (doc! { "system_buckets": "" }, "kitchen", buckets, true),
            (doc! { "db": "kitchen", "system_buckets": "" }, "kitchen", buckets, true),
            (doc! { "db": "kitchen", "system_buckets": "weather" }, "kitchen", buckets, true),
            (doc! { "db": "kitchen", "system_buckets": "other" }, "kitchen", buckets, false),
            (doc! { "db": "shop", "system_buckets": "" }, "kitchen", buckets, false),
            (doc! { "anyResource": true }, "shop", "system.js", true),
            (doc! { "cluster": true }, "shop", "orders", false),
            (doc! { "unknown": true }, "shop", "orders", false),
        ] {
            let told = format!("{resource} {database}.{collection}");
            let granted = privileges(vec![(resource, &["insert"])]);
            let namespace = Namespace::new(database, collection);
            assert_eq!(granted.allow("insert", &namespace), expected, "{told}");
            assert!(!granted.allow("remove", &namespace), "{told}");
        }
    }

    #[test]
    fn roles_add_up_and_any_action_is_every_action() {
        let orders = Namespace::new("shop", "orders");
        let shop = || doc! { "db": "shop", "collection": "" };
        let both = privileges(vec![(shop(), &["insert"]), (shop(), &["createIndex"])]);
        assert!(both.allow("insert", &orders) && both.allow("createIndex", &orders));
        assert!(!both.allow_all() && !both.allow_on_cluster("insert"));
        let all = privileges(vec![(doc! { "anyResource": true }, &["anyAction"])]);
        assert!(all.allow("collMod", &orders) && all.allow_on_cluster("useUUID"));
        assert!(all.allow_all());
        let cluster = privileges(vec![(doc! { "cluster": true }, &["useUUID"])]);
        assert!(cluster.allow_on_cluster("useUUID") && !cluster.allow_on_cluster("forceUUID"));
    }

    #[test]
    fn a_login_is_read_where_there_is_one() {
        let status = |users: Vec<Document>| {
            doc! { "authInfo": {
                "authenticatedUsers": users, "authenticatedUserRoles": [],
                "authenticatedUserPrivileges": [
                    { "resource": { "db": "shop", "collection": "" }, "actions": ["insert"] },
                ],
            }, "ok": 1.0 }
        };
        let login = Login::read(&status(vec![doc! { "user": "app", "db": "admin" }]));
        let login = login.expect("somebody");
        assert_eq!((login.user.as_str(), login.database.as_str()), ("app", "admin"));
        assert!(login.privileges.allow("insert", &Namespace::new("shop", "orders")));
        assert_eq!(Login::read(&status(Vec::new())), None);
        assert_eq!(Login::read(&doc! { "ok": 1.0 }), None);
    }
}
