//! A wire between the tool and a server that can lose the server's answers.

use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::Duration;

/// Where the first field of a command begins in an `OP_MSG`: after the header of 16 bytes, the
/// flags of 4, the kind of the section and the length of its document.
const COMMAND_AT: usize = 16 + 4 + 1 + 4;

/// A port that leads to a server. To some inserts the answers do not come as they should, although
/// the server has carried them out; or it lets no message pass that is too large, and cuts the
/// connection in its place.
pub(crate) struct Proxy {
    port: u16,
    left: Arc<AtomicU32>,
    lets_pass: Arc<AtomicBool>,
}

/// What becomes of an answer.
#[derive(Clone, Copy)]
enum Fate {
    /// It is lost together with the connection.
    Lost,
    /// It never comes, and the connection stays.
    Withheld,
    /// It comes after this time.
    Late(Duration),
    /// It comes, unless what was asked has more bytes than this, which nobody hears.
    Unasked(usize),
    /// It comes.
    Passes,
}

impl Proxy {
    /// A port that leads to this address and loses the answers to the first inserts, so many.
    pub(crate) fn losing(address: &str, answers: u32) -> Self {
        Self::new(address, answers, Fate::Lost)
    }

    /// A port that leads to this address and keeps the answers to the first inserts to itself, so
    /// many, as a host that is gone does.
    pub(crate) fn withholding(address: &str, answers: u32) -> Self {
        Self::new(address, answers, Fate::Withheld)
    }

    /// A port that leads to this address and delays the answers to the first inserts, so many.
    pub(crate) fn delaying(address: &str, answers: u32, delay: Duration) -> Self {
        Self::new(address, answers, Fate::Late(delay))
    }

    /// A port that leads to this address and cuts connections at messages with more bytes.
    pub(crate) fn cutting(address: &str, bytes_max: usize) -> Self {
        Self::new(address, 0, Fate::Unasked(bytes_max))
    }

    fn new(address: &str, answers: u32, fate: Fate) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let port = listener.local_addr().expect("it is bound").port();
        let to_spoil = Arc::new(AtomicU32::new(answers));
        let lets_pass = Arc::new(AtomicBool::new(false));
        let (address, left) = (address.to_owned(), Arc::clone(&to_spoil));
        let is_open = Arc::clone(&lets_pass);
        std::thread::spawn(move || {
            for client in listener.incoming().map_while(Result::ok) {
                let Ok(server) = TcpStream::connect(&address) else {
                    continue;
                };
                let left = Arc::clone(&left);
                let fate = if is_open.load(Ordering::SeqCst) { Fate::Passes } else { fate };
                std::thread::spawn(move || carry(client, server, &left, fate));
            }
        });
        Self { port, left: to_spoil, lets_pass }
    }

    /// The connection string of the port. Monitors poll, because an answer follows each request.
    pub(crate) fn uri(&self) -> String {
        format!("mongodb://127.0.0.1:{}/?serverMonitoringMode=poll", self.port)
    }

    /// Does nothing to connections any more that are opened from here on.
    pub(crate) fn let_pass(&self) {
        self.lets_pass.store(true, Ordering::SeqCst);
    }

    /// Answers that are still to be spoilt.
    pub(crate) fn left(&self) -> u32 {
        self.left.load(Ordering::SeqCst)
    }
}

/// Carries messages to and fro until one end is closed or an answer is to be lost.
fn carry(mut client: TcpStream, mut server: TcpStream, left: &AtomicU32, fate: Fate) {
    while let Some(request) = message(&mut client) {
        if let Fate::Unasked(bytes_max) = fate
            && request.len() > bytes_max
        {
            break;
        }
        let is_spoilt =
            request.get(COMMAND_AT..).is_some_and(|command| command.starts_with(b"\x02insert\0"))
                && left
                    .fetch_update(Ordering::SeqCst, Ordering::SeqCst, |left| left.checked_sub(1))
                    .is_ok();
        if server.write_all(&request).is_err() {
            break;
        }
        let Some(answer) = message(&mut server) else {
            break;
        };
        match fate {
            Fate::Lost if is_spoilt => break,
            Fate::Withheld if is_spoilt => {
                // Until the other end gives up.
                let _ = client.read(&mut [0]);
                break;
            }
            Fate::Late(delay) if is_spoilt => std::thread::sleep(delay),
            _ => {}
        }
        if client.write_all(&answer).is_err() {
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
