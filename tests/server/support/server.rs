//! A server that one test has to itself.

use super::pool::{self, Place};
use super::{Mongod, runtime};
use mongodb::bson::{Bson, Document, doc};
use mongodb::options::ClientOptions;
use mongodb::{Client, error::Error};
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

/// The databases every server has.
const OWN_DATABASES: [&str; 3] = ["admin", "config", "local"];

/// Time a server has to become primary of a set of one.
const ELECTION_SECONDS_MAX: u64 = 30;

/// The password of every user that a test makes.
pub(crate) const PASSWORD: &str = "correct-horse";

/// What becomes of a server after the test.
enum Lease {
    /// It goes back to the pool: all databases are dropped, or only these.
    Pooled(Option<Vec<String>>),
    /// It belongs to the pool, but is not known to be empty: nothing there may be dropped.
    Unchecked,
    /// It ends with the test.
    Private,
}

/// A server for one test. Dropping it cleans the server, or ends it if the test has failed.
pub(crate) struct Server {
    place: Option<Place>,
    lease: Lease,
    client: Client,
    uri: String,
    down: bool,
}

impl Server {
    /// A server without any user's database. With `$MONGODB_URI` that server must be empty, and
    /// users and roles stay there: a test that makes them wants a [`Server::private`] one.
    pub(crate) fn lease() -> Self {
        Self::leased(None)
    }

    /// A server without these databases; with `$MONGODB_URI`, nothing else is dropped there.
    pub(crate) fn lease_databases(databases: &[&str]) -> Self {
        Self::leased(Some(databases.iter().map(ToString::to_string).collect()))
    }

    /// A server of the test's own with these arguments of mongod.
    pub(crate) fn private(arguments: &[&str]) -> Self {
        Self::of(Mongod::start(arguments))
    }

    /// This server, as the test's own.
    pub(crate) fn of(mongod: Mongod) -> Self {
        let uri = mongod.uri().to_string();
        Self::at(Place::Own(mongod), uri, Lease::Private)
    }

    /// A server of the test's own whose disk takes a moment for each flush, if there is a compiler
    /// for what slows it down.
    #[expect(clippy::print_stdout, reason = "the test says why it looks at nothing")]
    pub(crate) fn with_slow_disk() -> Option<Self> {
        let folder = tempfile::tempdir().expect("a folder");
        let library = folder.path().join("slow_disk.so");
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/server/support/slow_disk.c");
        let mut compiler = Command::new("cc");
        compiler.args(["-shared", "-fPIC", "-O1", "-o"]).arg(&library).arg(source);
        if !compiler.status().is_ok_and(|status| status.success()) {
            println!("nothing is tested: cc does not compile what makes a disk slow");
            return None;
        }
        let mongod = Mongod::start_with(&[], &[("LD_PRELOAD", &library)]);
        let uri = mongod.uri().to_string();
        Some(Self::at(Place::Own(mongod), uri, Lease::Private))
    }

    /// A primary of the test's own, alone in its replica set, with these arguments of mongod.
    pub(crate) fn replica_set(arguments: &[&str]) -> Self {
        let mut server = Self::private(&[&["--replSet", "rs0"], arguments].concat());
        let direct = connect(&format!("{}/?directConnection=true", server.uri));
        let member = doc! { "_id": 0, "host": server.mongod().address() };
        let config = doc! { "_id": "rs0", "members": [member] };
        let admin = direct.database("admin");
        runtime()
            .block_on(async { admin.run_command(doc! { "replSetInitiate": config }).await })
            .expect("the set can be initiated");
        let deadline = Instant::now() + Duration::from_secs(ELECTION_SECONDS_MAX);
        loop {
            // Servers before 5.0 do not know `hello`.
            let hello = admin.run_command(doc! { "isMaster": 1 });
            let hello = runtime().block_on(async { hello.await });
            if hello.is_ok_and(|hello| hello.get_bool("ismaster").unwrap_or(false)) {
                break;
            }
            assert!(Instant::now() < deadline, "the only member did not become primary");
            std::thread::sleep(Duration::from_millis(20));
        }
        server.uri = format!("{}/?replicaSet=rs0", server.uri);
        server.client = connect(&server.uri);
        server
    }

    fn leased(databases: Option<Vec<String>>) -> Self {
        let place = pool::take();
        let (uri, foreign) = match &place {
            Place::Own(mongod) => (mongod.uri().to_string(), false),
            Place::Foreign(uri) => (uri.clone(), true),
        };
        let mut server = Self::at(place, uri, Lease::Unchecked);
        let occupied: Vec<String> = server
            .databases()
            .into_iter()
            .filter(|name| databases.as_ref().is_none_or(|wanted| wanted.contains(name)))
            .collect();
        let whose = if foreign { "server at $MONGODB_URI" } else { "pool's server" };
        assert!(
            occupied.is_empty(),
            "the {whose} already holds {occupied:?}, which this test would drop; \
             name another server or drop them yourself"
        );
        server.lease = Lease::Pooled(databases);
        server
    }

    fn at(place: Place, uri: String, lease: Lease) -> Self {
        Self { place: Some(place), lease, client: connect(&uri), uri, down: false }
    }

    /// The connection string.
    pub(crate) fn uri(&self) -> &str {
        &self.uri
    }

    /// A client of the server; it lives on [`runtime`].
    pub(crate) fn client(&self) -> Client {
        self.client.clone()
    }

    /// The process behind it; only a server of our own has one that tests may touch.
    pub(crate) fn mongod(&mut self) -> &mut Mongod {
        match &mut self.place {
            Some(Place::Own(mongod)) => mongod,
            _ => panic!("this test kills its server; unset $MONGODB_URI to run it"),
        }
    }

    /// Sends a command and returns the server's answer.
    pub(crate) fn try_run(&self, database: &str, command: Document) -> Result<Document, Error> {
        let database = self.client.database(database);
        runtime().block_on(async { database.run_command(command).await })
    }

    /// Sends a command that must succeed.
    pub(crate) fn run(&self, database: &str, command: Document) -> Document {
        let shown = command.to_string();
        self.try_run(database, command).unwrap_or_else(|error| panic!("{shown}: {error}"))
    }

    /// The users' databases, sorted.
    pub(crate) fn databases(&self) -> Vec<String> {
        let names = runtime()
            .block_on(async { self.client.list_database_names().await })
            .expect("databases can be listed");
        let mut names: Vec<String> =
            names.into_iter().filter(|name| !OWN_DATABASES.contains(&name.as_str())).collect();
        names.sort();
        names
    }

    /// The restore's commands that the profiler saw in a database, in their order; ends profiling,
    /// which `{ "profile": 2 }` begins.
    pub(crate) fn profiled(&self, database: &str) -> Vec<Document> {
        self.run(database, doc! { "profile": 0 });
        let command = doc! {
            "find": "system.profile", "filter": { "appName": "restorm" },
            "sort": { "$natural": 1 }, "batchSize": 10_000,
        };
        let reply = self.run(database, command);
        let seen = reply.get_document("cursor").and_then(|cursor| cursor.get_array("firstBatch"));
        let command = |entry: &Bson| entry.as_document()?.get_document("command").ok().cloned();
        seen.expect("a batch").iter().filter_map(command).collect()
    }

    /// Makes a user with these roles on a private server with `--auth`, and returns the connection
    /// string of that user. The server's own client cannot be used any more: the first user, who
    /// may do everything, ends the time in which no login is needed.
    pub(crate) fn user(&self, name: &str, roles: &[Document]) -> String {
        let login = |name: &str| {
            self.uri.replacen("://", &format!("://{name}:{PASSWORD}@"), 1) + "/?authSource=admin"
        };
        let root = doc! { "createUser": "root", "pwd": PASSWORD, "roles": ["root"] };
        // It is there already where this is the second user.
        let _ = self.try_run("admin", root);
        let admin = connect(&login("root")).database("admin");
        let user = doc! { "createUser": name, "pwd": PASSWORD, "roles": roles };
        runtime().block_on(async { admin.run_command(user).await }).expect("a user is made");
        login(name)
    }

    /// Kills the server as a power cut would.
    pub(crate) fn kill(&mut self) {
        self.mongod().kill();
        self.down = true;
    }

    /// Starts a killed server again on the same port and data; restarts a running one.
    pub(crate) fn restart(&mut self) {
        self.restart_with(&[]);
    }

    /// The same, this time with these arguments of mongod as well.
    pub(crate) fn restart_with(&mut self, arguments: &[&str]) {
        self.mongod().restart_with(arguments);
        self.down = false;
        // Servers before 4.4 do not say that a connection of before is gone.
        self.client = connect(&self.uri);
    }

    /// Whether the server keeps nothing of the test: what was made is dropped, and there are no
    /// users and roles, whose collections would stay behind even if they were emptied.
    fn clean(&self, databases: Option<&Vec<String>>) -> Result<bool, Error> {
        let doomed = databases.cloned().unwrap_or_else(|| self.databases());
        runtime().block_on(async {
            for name in doomed {
                self.client.database(&name).drop().await?;
            }
            let left = self.client.database("admin").list_collection_names().await?;
            Ok(!left.iter().any(|name| name == "system.users" || name == "system.roles"))
        })
    }

    /// Ends a server of our own, or hands back one that is not ours, as it is.
    fn give_up(&mut self) {
        match self.place.take() {
            Some(foreign @ Place::Foreign(_)) => pool::put_back(foreign),
            Some(Place::Own(_)) => pool::retire(),
            None => {}
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let databases = match &self.lease {
            Lease::Private => return,
            Lease::Unchecked => return self.give_up(),
            Lease::Pooled(databases) => databases,
        };
        let foreign = matches!(self.place, Some(Place::Foreign(_)));
        let failed = std::thread::panicking();
        let clean = (foreign || !(failed || self.down))
            && self.clean(databases.as_ref()).is_ok_and(|clean| clean);
        if clean && let Some(place) = self.place.take() {
            pool::put_back(place);
        } else {
            self.give_up();
        }
    }
}

/// A client of the server at this connection string.
pub(crate) fn connect(uri: &str) -> Client {
    runtime().block_on(async {
        let options = ClientOptions::parse(uri).await.expect("the URI is well formed");
        Client::with_options(options).expect("the options are consistent")
    })
}
