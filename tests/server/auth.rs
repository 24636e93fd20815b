//! Logging in: mechanisms, wrong passwords, where a password comes from, and that none is shown.

use crate::program::{Finished, Program};
use crate::support::dump::genuine;
use crate::support::{Restore, Server, connect, runtime, stored};
use mongodb::Client;
use mongodb::bson::{Document, doc};

/// A password that no part of a message has by chance, with everything that URIs reserve.
const SECRET: &str = "h0rse:/?#[]@%&=+ \u{e4}";

/// The same as it stands in a connection string.
const ENCODED: &str = "h0rse%3A%2F%3F%23%5B%5D%40%25%26%3D%2B%20%C3%A4";

/// A server that wants a login, and a client that may do everything there.
fn guarded() -> (Server, Client) {
    let server = Server::private(&["--auth"]);
    let root = server.user("chief", &[doc! { "role": "root", "db": "admin" }]);
    (server, connect(&root))
}

/// Makes a user with [`SECRET`].
fn user(root: &Client, database: &str, name: &str, mechanism: &str) {
    let roles =
        [doc! { "role": "readWrite", "db": "shop" }, doc! { "role": "root", "db": "admin" }];
    let user = doc! {
        "createUser": name, "pwd": SECRET, "roles": &roles[..], "mechanisms": [mechanism],
    };
    let database = root.database(database);
    runtime().block_on(async { database.run_command(user).await }).expect("a user is made");
}

/// The arguments that restore the orders.
fn orders() -> Vec<String> {
    let dump = genuine("full_6.0/shop/orders.bson");
    vec![dump.display().to_string(), "--drop".to_owned()]
}

/// Runs it without any terminal that a password could be asked for at.
fn detached(arguments: &[&str], input: &str) -> Finished {
    Program::of("setsid", &["-w", env!("CARGO_BIN_EXE_restorm"), "restore"])
        .args(&orders())
        .args(arguments)
        .input(input)
        .run()
}

#[track_caller]
fn hides_the_secret(finished: &Finished) {
    let told = format!("{}{}", finished.stdout, finished.stderr);
    for form in [SECRET, ENCODED, "h0rse"] {
        assert!(!told.contains(form), "{told}");
    }
}

#[track_caller]
fn ended(finished: &Finished, status: i32) {
    assert_eq!(finished.status, Some(status), "{}\n{}", finished.stdout, finished.stderr);
    hides_the_secret(finished);
}

#[test]
fn both_kinds_of_scram_by_options_and_by_connection_string() {
    let (server, root) = guarded();
    let address = server.uri().trim_start_matches("mongodb://");
    for (name, mechanism) in [("one", "SCRAM-SHA-1"), ("two", "SCRAM-SHA-256")] {
        user(&root, "admin", name, mechanism);
        for wanted in [Some(mechanism), None] {
            let mut arguments = vec!["-h", address, "-u", name, "-p", SECRET];
            arguments.extend(["--authenticationDatabase", "admin"]);
            if let Some(mechanism) = wanted {
                arguments.extend(["--authenticationMechanism", mechanism]);
            }
            let finished = detached(&arguments, "");
            ended(&finished, 0);
            let warnings = finished.stderr.matches("warning: a password on the command line");
            assert_eq!(warnings.count(), 1, "{}", finished.stderr);
        }
        let uri = format!("mongodb://{name}:{ENCODED}@{address}/?authMechanism={mechanism}");
        ended(&detached(&["--uri", &uri], ""), 0);
        ended(&detached(&[&uri], ""), 0);
        assert_eq!(stored(&root, "shop", "orders").len(), 3000);
    }
}

#[test]
fn the_user_is_looked_for_in_the_database_that_is_restored() {
    let (server, root) = guarded();
    user(&root, "shop", "local", "SCRAM-SHA-256");
    let address = server.uri().trim_start_matches("mongodb://");
    let login = ["-h", address, "-u", "local", "-p", SECRET];
    ended(&detached(&[&login[..], &["--db", "shop"]].concat(), ""), 0);
    // Without a database it is looked for in admin.
    ended(&detached(&login, ""), 1);
}

#[test]
fn better_than_the_peer_b13_no_password_is_shown_whatever_fails() {
    // The peer prints the whole connection string, password and all, where it cannot connect.
    let (server, root) = guarded();
    user(&root, "admin", "app", "SCRAM-SHA-256");
    let address = server.uri().trim_start_matches("mongodb://");
    let good = format!("mongodb://app:{ENCODED}@{address}");
    for (uri, arguments, status) in [
        (format!("mongodb://app:{ENCODED}@127.0.0.1:1/?serverSelectionTimeoutMS=300"), &[][..], 1),
        (format!("mongodb://nobody:{ENCODED}@{address}"), &[], 1),
        (format!("{good}/?authSource=elsewhere"), &[], 1),
        (format!("{good}/?authMechanism=SCRAM-SHA-1"), &[], 1),
        (format!("{good}/?authMechanism=MONGODB-X"), &[], 2),
        (format!("{good}/?w=0"), &[], 2),
        (format!("{good}/?nonsense={ENCODED}&w=0"), &[], 2),
        (format!("{good}/?tlsNonsense={ENCODED}"), &[], 2),
        (good.clone(), &["-p", "other"], 2),
        (good.clone(), &["-u", "other"], 2),
        (format!("mongodb://app:{SECRET}@{address}"), &[], 2),
        (format!("mongodb://app:h0rse/x@{address}"), &[], 2),
        (format!("mongodb://app:h0rse?x@{address}"), &[], 2),
        (format!("mongodb://{address}/?tlsCertificateKeyFilePassword=h0rse"), &[], 1),
    ] {
        let finished = detached(&[&["--uri", &uri], arguments].concat(), "");
        assert!(finished.stderr.contains("error: "), "{uri}: {}", finished.stderr);
        hides_the_secret(&finished);
        let is_tls = uri.contains("KeyFilePassword");
        assert!(is_tls || finished.status == Some(status), "{uri}: {}", finished.stderr);
    }
}

#[test]
fn a_password_comes_from_a_file_or_from_standard_input() {
    let (server, root) = guarded();
    user(&root, "admin", "app", "SCRAM-SHA-256");
    let address = server.uri().trim_start_matches("mongodb://");
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("secrets.yaml");
    let file_arguments = ["--config", file.to_str().unwrap()];
    let login = ["--host", address, "--username", "app", "--authenticationDatabase", "admin"];

    std::fs::write(&file, format!("password: '{SECRET}'\n")).unwrap();
    let finished = detached(&[&login[..], &file_arguments].concat(), "");
    ended(&finished, 0);
    assert!(!finished.stderr.contains("warning"), "{}", finished.stderr);
    std::fs::write(&file, format!("uri: mongodb://app:{ENCODED}@{address}\n")).unwrap();
    ended(&detached(&file_arguments, ""), 0);
    std::fs::write(&file, format!("passwort: '{SECRET}'\n")).unwrap();
    ended(&detached(&[&login[..], &file_arguments].concat(), ""), 2);

    ended(&detached(&login, &format!("{SECRET}\n")), 0);
    let missing = detached(&login, "");
    ended(&missing, 2);
    assert!(missing.stderr.contains("no terminal"), "{}", missing.stderr);
    assert!(missing.stderr.contains("--config"), "{}", missing.stderr);
}

#[test]
fn better_than_the_peer_b14_a_password_is_not_read_from_a_dump_on_standard_input() {
    // The peer takes the first line of the archive for the password.
    for dump in ["-", "--archive", "--archive=-"] {
        let arguments = ["restore", dump, "-u", "app", "-h", "127.0.0.1:1"];
        let finished = Program::of("setsid", &["-w", env!("CARGO_BIN_EXE_restorm")])
            .args(&arguments)
            .input(format!("{SECRET}\n"))
            .run();
        ended(&finished, 2);
        assert!(finished.stderr.contains("there is no terminal"), "{dump}: {}", finished.stderr);
    }
}

/// Runs a program on a terminal of its own, types the password when asked, and prints what was
/// shown there.
const TERMINAL: &str = r#"
import os, pty, sys, termios, time
password, program = sys.argv[1], sys.argv[2:]
child, terminal = pty.fork()
if child == 0:
    os.execv(program[0], program)
shown = b""
typed = False
while True:
    try:
        piece = os.read(terminal, 4096)
    except OSError:
        break
    if not piece:
        break
    shown += piece
    if not typed and b"password of" in shown:
        typed = True
        # Whoever types before the echo is off sees it, whatever the program does.
        for _ in range(500):
            if not termios.tcgetattr(terminal)[3] & termios.ECHO:
                break
            time.sleep(0.01)
        os.write(terminal, password.encode() + b"\n")
sys.stdout.buffer.write(shown)
sys.exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"#;

#[test]
fn a_password_is_asked_for_on_the_terminal_and_not_echoed() {
    let (server, root) = guarded();
    user(&root, "admin", "app", "SCRAM-SHA-256");
    let address = server.uri().trim_start_matches("mongodb://");
    for (typed, arguments, status) in [
        (SECRET, &["-u", "app"][..], 0),
        (SECRET, &["-u", "app", "-p"], 0),
        ("wrong-h0rse", &["-u", "app"], 1),
    ] {
        let finished = Program::of("python3", &["-c", TERMINAL, typed])
            .args(&[env!("CARGO_BIN_EXE_restorm"), "restore"])
            .args(&orders())
            .args(&["-h", address, "--authenticationDatabase", "admin"])
            .args(arguments)
            .run();
        ended(&finished, status);
        assert!(finished.stdout.contains("password of the user `app`"), "{}", finished.stdout);
    }
}

#[test]
fn a_user_without_rights_is_told_which_role_would_do() {
    let (server, root) = guarded();
    let user = doc! { "createUser": "idle", "pwd": SECRET, "roles": Vec::<Document>::new() };
    let admin = root.database("admin");
    runtime().block_on(async { admin.run_command(user).await }).unwrap();
    let uri = server.uri().replace("://", &format!("://idle:{ENCODED}@"));
    let restored = Restore::new(&uri, &genuine("full_6.0/shop")).run().ended(1);
    assert!(restored.stderr.contains("not authorized"), "{}", restored.stderr);
    assert!(restored.stderr.contains("readWrite"), "{}", restored.stderr);
    assert!(!restored.stderr.contains("h0rse"), "{}", restored.stderr);
}
