//! A wire between the tool and a server that can lose the server's answers.

use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

/// Where the first field of a command begins in an `OP_MSG`: after the header of 16 bytes, the
/// flags of 4, the kind of the section and the length of its document.
const COMMAND_AT: usize = 16 + 4 + 1 + 4;

/// A port that leads to a server. It loses the answer to some inserts together with the
/// connection, after the server has carried them out; and it lets no message pass that is too
/// large, and cuts the connection in its place.
pub(crate) struct Proxy {
    port: u16,
    to_lose: Arc<AtomicU32>,
}

/// What is done to messages.
#[derive(Clone)]
struct Harm {
    to_lose: Arc<AtomicU32>,
    bytes_max: usize,
}

impl Proxy {
    /// A port that leads to this address and loses the answers to the first inserts, so many.
    pub(crate) fn losing(address: &str, answers: u32) -> Self {
        Self::harming(address, answers, usize::MAX)
    }

    /// A port that leads to this address and cuts connections at messages with more bytes.
    pub(crate) fn cutting(address: &str, bytes_max: usize) -> Self {
        Self::harming(address, 0, bytes_max)
    }

    fn harming(address: &str, answers: u32, bytes_max: usize) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let port = listener.local_addr().expect("it is bound").port();
        let to_lose = Arc::new(AtomicU32::new(answers));
        let harm = Harm { to_lose: Arc::clone(&to_lose), bytes_max };
        let address = address.to_owned();
        std::thread::spawn(move || {
            for client in listener.incoming().map_while(Result::ok) {
                let Ok(server) = TcpStream::connect(&address) else {
                    continue;
                };
                let harm = harm.clone();
                std::thread::spawn(move || carry(client, server, &harm));
            }
        });
        Self { port, to_lose }
    }

    /// The connection string of the port. Monitors poll, because an answer follows each request.
    pub(crate) fn uri(&self) -> String {
        format!("mongodb://127.0.0.1:{}/?serverMonitoringMode=poll", self.port)
    }

    /// Answers that are still to be lost.
    pub(crate) fn left(&self) -> u32 {
        self.to_lose.load(Ordering::SeqCst)
    }
}

/// Carries messages to and fro until one end is closed or an answer is to be lost.
fn carry(mut client: TcpStream, mut server: TcpStream, harm: &Harm) {
    while let Some(request) = message(&mut client) {
        if request.len() > harm.bytes_max {
            break;
        }
        let loses =
            request.get(COMMAND_AT..).is_some_and(|command| command.starts_with(b"\x02insert\0"))
                && harm
                    .to_lose
                    .fetch_update(Ordering::SeqCst, Ordering::SeqCst, |left| left.checked_sub(1))
                    .is_ok();
        if server.write_all(&request).is_err() {
            break;
        }
        let Some(answer) = message(&mut server) else {
            break;
        };
        if loses || client.write_all(&answer).is_err() {
            break;
        }
    }
    // Either end may be closed already.
    let _ = client.shutdown(Shutdown::Both);
    let _ = server.shutdown(Shutdown::Both);
}

fn message(stream: &mut TcpStream) -> Option<Vec<u8>> {
    let mut length = [0; 4];
    stream.read_exact(&mut length).ok()?;
    let bytes = usize::try_from(u32::from_le_bytes(length)).ok()?;
    let mut message = vec![0; bytes];
    message[..4].copy_from_slice(&length);
    stream.read_exact(&mut message[4..]).ok()?;
    Some(message)
}
