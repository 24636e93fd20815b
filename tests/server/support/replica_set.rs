//! A replica set of several members.

use super::{Mongod, connect, runtime};
use mongodb::Client;
use mongodb::bson::{Document, doc};
use std::time::{Duration, Instant};

/// Time a set has to agree on a primary.
const ELECTION_SECONDS_MAX: u64 = 60;

/// Members that elect a primary among them.
pub(crate) struct ReplicaSet {
    members: Vec<Mongod>,
    client: Client,
}

impl ReplicaSet {
    /// Starts a set with this number of members and waits for its primary. Elections are quick.
    pub(crate) fn of(count: usize) -> Self {
        Self::with(count, &[])
    }

    /// The same with further arguments for each mongod.
    pub(crate) fn with(count: usize, arguments: &[&str]) -> Self {
        let arguments = [&["--replSet", "rs0"], arguments].concat();
        let members: Vec<_> = (0..count).map(|_| Mongod::start(&arguments)).collect();
        let hosts: Vec<_> = (0_i32..)
            .zip(&members)
            .map(|(id, member)| doc! { "_id": id, "host": member.address() })
            .collect();
        let settings = doc! { "electionTimeoutMillis": 2000, "heartbeatIntervalMillis": 500 };
        let config = doc! { "_id": "rs0", "members": hosts, "settings": settings };
        let admin = direct(&members[0]).database("admin");
        runtime()
            .block_on(async { admin.run_command(doc! { "replSetInitiate": config }).await })
            .expect("the set can be initiated");
        let addresses: Vec<_> = members.iter().map(Mongod::address).collect();
        let client = connect(&format!("mongodb://{}/?replicaSet=rs0", addresses.join(",")));
        let set = Self { members, client };
        set.wait_for(|hello| hello.get_array("hosts").is_ok_and(|hosts| hosts.len() == count));
        set.wait_until_all_serve();
        set
    }

    /// The connection string with all members.
    pub(crate) fn uri(&self) -> String {
        format!("mongodb://{}/?replicaSet=rs0", self.addresses().join(","))
    }

    /// The addresses of the members.
    pub(crate) fn addresses(&self) -> Vec<&str> {
        self.members.iter().map(Mongod::address).collect()
    }

    /// A client of the whole set.
    pub(crate) fn client(&self) -> &Client {
        &self.client
    }

    /// The address of the primary.
    pub(crate) fn primary(&self) -> String {
        let hello = self.wait_for(|hello| hello.contains_key("primary"));
        hello.get_str("primary").expect("a primary").to_owned()
    }

    /// A member that is not the primary.
    pub(crate) fn secondary(&self) -> &str {
        let primary = self.primary();
        self.addresses().into_iter().find(|address| **address != primary).expect("several members")
    }

    /// Kills the primary as a power cut would; returns which member it was.
    pub(crate) fn kill_primary(&mut self) -> usize {
        let primary = self.primary();
        self.kill(&primary)
    }

    fn kill(&mut self, address: &str) -> usize {
        let is_it = |member: &Mongod| member.address() == address;
        let place = self.members.iter().position(is_it).expect("a member");
        self.members[place].kill();
        place
    }

    /// Starts a killed member again.
    pub(crate) fn restart(&mut self, member: usize) {
        self.members[member].restart();
    }

    /// Stops all members but the primary where they stand; returns the primary.
    pub(crate) fn freeze_secondaries(&self) -> String {
        let primary = self.primary();
        for member in self.members.iter().filter(|member| member.address() != primary) {
            signal(member, "STOP");
        }
        primary
    }

    /// Kills this member as a power cut would, and lets the others go on.
    pub(crate) fn kill_and_thaw(&mut self, address: &str) -> usize {
        let killed = self.kill(address);
        for (place, member) in self.members.iter().enumerate() {
            if place != killed {
                signal(member, "CONT");
            }
        }
        killed
    }

    /// Waits until a member other than this one is the primary.
    pub(crate) fn wait_for_another_primary(&self, former: &str) {
        self.wait_for(|hello| hello.get_str("primary").is_ok_and(|primary| primary != former));
    }

    /// Makes the primary step down.
    pub(crate) fn step_down(&self) {
        let admin = self.client.database("admin");
        // At once, whatever is on its way: a polite step-down waits for a moment without writes.
        let command =
            doc! { "replSetStepDown": 10, "secondaryCatchUpPeriodSecs": 0, "force": true };
        runtime()
            .block_on(async { admin.run_command(command).await })
            .expect("the primary steps down");
    }

    /// Waits until what the primary says of the set is as wanted, under its name of before 5.0.
    fn wait_for(&self, wanted: impl Fn(&Document) -> bool) -> Document {
        let admin = self.client.database("admin");
        let deadline = Instant::now() + Duration::from_secs(ELECTION_SECONDS_MAX);
        loop {
            let hello =
                runtime().block_on(async { admin.run_command(doc! { "isMaster": 1 }).await });
            match hello {
                Ok(hello) if wanted(&hello) => return hello,
                other => assert!(Instant::now() < deadline, "the set is not ready: {other:?}"),
            }
            std::thread::sleep(Duration::from_millis(50));
        }
    }

    /// Waits until no member is still copying from another, so that any may become primary.
    fn wait_until_all_serve(&self) {
        let deadline = Instant::now() + Duration::from_secs(ELECTION_SECONDS_MAX);
        for member in &self.members {
            let admin = direct(member).database("admin");
            let serves = || {
                let hello =
                    runtime().block_on(async { admin.run_command(doc! { "isMaster": 1 }).await });
                hello.is_ok_and(|hello| {
                    ["ismaster", "secondary"]
                        .iter()
                        .any(|role| hello.get_bool(role).unwrap_or(false))
                })
            };
            while !serves() {
                assert!(Instant::now() < deadline, "{} does not serve", member.address());
                std::thread::sleep(Duration::from_millis(50));
            }
        }
    }
}

fn signal(member: &Mongod, name: &str) {
    let kill = format!("kill -{name} {}", member.pid());
    let status = std::process::Command::new("sh").args(["-c", &kill]).status();
    assert!(status.expect("sh runs").success(), "{kill} failed");
}

fn direct(member: &Mongod) -> Client {
    connect(&format!("{}/?directConnection=true", member.uri()))
}
