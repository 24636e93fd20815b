//! The rights that a plan takes, and those that a user lacks.

use std::collections::{BTreeMap, BTreeSet};

use crate::dump::inventory::CollectionKind;
use crate::error::{Error, ErrorKind};
use crate::facts::conditions::Writing;
use crate::facts::privileges::{Login, Privileges};
use crate::namespace::Namespace;
use crate::plan::preflight::{NAMES_SHOWN, shown};
use crate::plan::users::Content;
use crate::plan::{CollectionPlan, Creation, ExistingPolicy, RestorePlan, Validation};

const BYPASS: &str = "bypassDocumentValidation";

/// Actions on the server as a whole that choosing UUIDs takes.
const OF_UUIDS: [&str; 2] = ["forceUUID", "useUUID"];

/// What the role `readWrite` of a database allows there, on `system.js` too.
const OF_READ_WRITE: [&str; 6] =
    ["createCollection", "createIndex", "dropCollection", "insert", "remove", "update"];

/// Databases named one by one in a grant; for more a role for all of them is shorter.
const DATABASES_GRANTED: usize = 5;

/// Collections by what is lacking there.
type Lacking = BTreeMap<BTreeSet<&'static str>, Vec<Namespace>>;

/// Refuses a plan that takes rights the user lacks. Without the right to bypass validators, they
/// judge, which is noted.
pub(super) fn check(plan: &mut RestorePlan, login: &Login, writing: Writing) -> Result<(), Error> {
    keep_validators(plan, login);
    plan.notes.extend(removed(plan, login));
    let mut lacking = Lacking::new();
    for collection in &plan.collections {
        for (namespace, actions) in missing(collection, &login.privileges, writing) {
            lacking.entry(actions).or_default().push(namespace);
        }
    }
    let takes_uuids = plan.collections.iter().any(|collection| collection.uuid.is_some());
    let of_cluster: Vec<&str> = OF_UUIDS
        .into_iter()
        .filter(|action| takes_uuids && !login.privileges.allow_on_cluster(action))
        .collect();
    if lacking.is_empty() && of_cluster.is_empty() {
        return Ok(());
    }
    Err(refused(login, &lacking, &of_cluster))
}

/// What to say where the run removes its own user: users and roles that the dump lacks go with
/// `--drop`, and one that is replaced is another one.
fn removed(plan: &RestorePlan, login: &Login) -> Option<String> {
    let users = plan.users.as_ref()?;
    let is_among = users.terms.database.as_ref().is_none_or(|of| *of == login.database);
    if users.terms.existing != ExistingPolicy::Drop || !is_among {
        return None;
    }
    let name = format!("{}.{}", login.database, login.user);
    if let Content::Read(accounts) = &users.content
        && accounts.users.as_ref().is_none_or(|users| users.names.contains(&name))
    {
        return None;
    }
    Some(format!(
        "--drop removes the user `{}`, as whom this runs, unless the dump brings it: it is \
         the last thing that this run does, and the temporary collections of the users stay; leave \
         --drop out, or run as a user of the dump",
        login.user
    ))
}

/// What is not allowed of what a collection takes, by the namespace that it is done to.
fn missing(
    collection: &CollectionPlan,
    privileges: &Privileges,
    writing: Writing,
) -> BTreeMap<Namespace, BTreeSet<&'static str>> {
    let mut missing: BTreeMap<Namespace, BTreeSet<&'static str>> = BTreeMap::new();
    for (action, namespace) in needed(collection, privileges, writing) {
        if !privileges.allow(action, namespace) {
            missing.entry(namespace.clone()).or_default().insert(action);
        }
    }
    missing
}

/// What a collection takes, its documents included.
fn needed<'a>(
    collection: &'a CollectionPlan,
    privileges: &Privileges,
    writing: Writing,
) -> Vec<(&'static str, &'a Namespace)> {
    let (namespace, data) = (&collection.namespace, &collection.data_namespace);
    let is_view = collection.kind == CollectionKind::View;
    let mut needed = Vec::new();
    match collection.creation {
        Creation::DropAndCreate => needed.push(("dropCollection", namespace)),
        Creation::Empty => needed.push(("remove", namespace)),
        Creation::Create | Creation::Use => {}
    }
    if matches!(collection.creation, Creation::Create | Creation::DropAndCreate) {
        // Whoever may insert may create as well, but for views.
        let may_insert = !is_view && privileges.allow("insert", namespace);
        needed.extend((!may_insert).then_some(("createCollection", namespace)));
    }
    if collection.data.is_some() && !is_view {
        let actions: &[_] = match writing {
            Writing::Inserts => &["insert"],
            Writing::Updates => &["insert", "update"],
            Writing::Removes => &["remove"],
        };
        needed.extend(actions.iter().map(|&action| (action, data)));
    }
    if !collection.indexes.is_empty() {
        needed.push(("createIndex", namespace));
    }
    if collection.expire_after_seconds.is_some() {
        needed.push(("collMod", namespace));
    }
    needed
}

/// Has validators judge where the user may not bypass them, and notes it where there may be some.
fn keep_validators(plan: &mut RestorePlan, login: &Login) {
    let mut judged: BTreeSet<String> = BTreeSet::new();
    for collection in &mut plan.collections {
        let is_asked = collection.validation == Validation::Bypassed && collection.data.is_some();
        if !is_asked || login.privileges.allow(BYPASS, &collection.data_namespace) {
            continue;
        }
        collection.validation = Validation::Kept;
        if collection.options.contains_key("validator") || collection.creation == Creation::Use {
            judged.insert(collection.namespace.database().to_owned());
        }
    }
    if judged.is_empty() {
        return;
    }
    let roles = roles(&judged, "dbAdmin");
    plan.notes.push(format!(
        "the user `{}` may not bypass validators ({BYPASS}) in {}, so that they judge every \
         document; to allow it: {}",
        login.user,
        shown(judged.iter().map(String::as_str)),
        grant(login, &roles)
    ));
}

fn refused(login: &Login, lacking: &Lacking, of_cluster: &[&str]) -> Error {
    let mut told: Vec<String> = Vec::new();
    for (actions, namespaces) in lacking.iter().take(NAMES_SHOWN) {
        let actions: Vec<_> = actions.iter().copied().collect();
        let names: Vec<String> = namespaces.iter().map(ToString::to_string).collect();
        told.push(format!("{} on {}", actions.join(", "), shown(names.iter().map(String::as_str))));
    }
    if lacking.len() > NAMES_SHOWN {
        told.push(format!("and others on {} more kinds of places", lacking.len() - NAMES_SHOWN));
    }
    if !of_cluster.is_empty() {
        told.push(format!("{} on the cluster", of_cluster.join(", ")));
    }
    let message = format!(
        "the user `{}` of `{}` lacks rights that the plan takes: {}",
        login.user,
        login.database,
        told.join("; ")
    );
    Error::new(ErrorKind::Plan, message).hint(format!(
        "nothing was touched; a user who may grant roles runs: {}; or leave those collections out \
         with --ns-exclude",
        grant(login, &fitting_roles(lacking, of_cluster))
    ))
}

/// The built-in roles that together allow what is lacking.
fn fitting_roles(lacking: &Lacking, of_cluster: &[&str]) -> Vec<(String, String)> {
    let mut databases = BTreeSet::new();
    let mut administered = BTreeSet::new();
    let mut is_special = !of_cluster.is_empty();
    for (actions, namespaces) in lacking {
        for namespace in namespaces {
            let database = namespace.database();
            databases.insert(database.to_owned());
            if !actions.iter().all(|action| OF_READ_WRITE.contains(action)) {
                administered.insert(database.to_owned());
            }
            let is_script = namespace.collection() == "system.js";
            is_special |= namespace.is_system() && !is_script;
        }
    }
    if !is_special && databases.len() <= DATABASES_GRANTED {
        let mut all = roles(&databases, "readWrite");
        all.extend(roles(&administered, "dbAdmin"));
        return all;
    }
    let mut all = vec![("restore".to_owned(), "admin".to_owned())];
    // Emptying a collection is the one thing that the role for restores does not allow.
    let emptied = lacking.iter().filter(|(actions, _)| actions.contains("remove"));
    let emptied = emptied.flat_map(|(_, namespaces)| namespaces);
    let emptied: BTreeSet<_> = emptied.map(|one| one.database().to_owned()).collect();
    all.extend(roles(&emptied, "readWrite"));
    all
}

fn roles(databases: &BTreeSet<String>, role: &str) -> Vec<(String, String)> {
    if databases.len() > DATABASES_GRANTED {
        return vec![("restore".to_owned(), "admin".to_owned())];
    }
    databases.iter().map(|database| (role.to_owned(), database.clone())).collect()
}

/// The command of the shell that grants roles to the user.
fn grant(login: &Login, roles: &[(String, String)]) -> String {
    let roles: Vec<_> = roles
        .iter()
        .map(|(role, database)| format!("{{role: {role:?}, db: {database:?}}}"))
        .collect();
    format!(
        "db.getSiblingDB({:?}).grantRolesToUser({:?}, [{}])",
        login.database,
        login.user,
        roles.join(", ")
    )
}
