//! Serves the metrics of a run over HTTP while it lasts.
//!
//! Prometheus comes and fetches, so whoever wants metrics of a short run has to fetch them in time.
//! An answer is a page of text that is written when it is asked for; nothing is kept.

use std::fmt;
use std::net::SocketAddr;
use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;

use hyper::body::Incoming;
use hyper::header::{ACCEPT, ALLOW, CONTENT_TYPE};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Notify, watch};
use tokio::task::{JoinHandle, JoinSet};

use crate::error::{Error, ErrorKind};
use crate::limits::{
    INTERRUPT_INTERVAL, METRICS_CONNECTIONS_MAX, METRICS_GRACE, METRICS_REQUEST_TIMEOUT,
};
use crate::report::Metrics;
use crate::report::metrics::Exposition;

/// Where metrics are found.
const PATH: &str = "/metrics";

/// Where connections are taken that name no address: from this machine alone.
const LOOPBACK: &str = "127.0.0.1";

/// How long no connection is taken after one could not be, such as for want of file descriptors.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// An address to listen on, as it was given.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListenAddress {
    host: String,
    port: u16,
}

impl FromStr for ListenAddress {
    type Err = &'static str;

    /// Takes a port (`9216` or `:9216`, on this machine's loopback) or a host and a port.
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        const WANTED: &str = "a port such as 9216, or an address and a port, is needed";
        let (host, port) = text.rsplit_once(':').unwrap_or(("", text));
        let host = match host.strip_prefix('[').and_then(|host| host.strip_suffix(']')) {
            Some(bare) => bare,
            None if host.is_empty() => LOOPBACK,
            None if host.contains(':') => {
                return Err("an IPv6 address is written in brackets, such as [::1]:9216");
            }
            None => host,
        };
        let port = port.parse().map_err(|_| WANTED)?;
        Ok(Self { host: host.to_owned(), port })
    }
}

impl fmt::Display for ListenAddress {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { host, port } = self;
        if host.contains(':') {
            write!(out, "[{host}]:{port}")
        } else {
            write!(out, "{host}:{port}")
        }
    }
}

/// A server of metrics; it ends when this is closed or dropped.
pub struct Exporter {
    address: SocketAddr,
    scraped: Arc<Notify>,
    end: watch::Sender<()>,
    task: JoinHandle<()>,
}

impl Exporter {
    /// Listens on this address and answers with these metrics.
    ///
    /// # Errors
    ///
    /// Of kind [`ErrorKind::Usage`], where nobody can listen there.
    pub async fn start(address: &ListenAddress, metrics: Arc<Metrics>) -> Result<Self, Error> {
        let cannot = |error: std::io::Error| {
            let message = format!("metrics cannot be served on {address}: {error}");
            Error::new(ErrorKind::Usage, message)
                .hint("nothing was restored; name a free port, or 0 for any that is free")
        };
        let listener =
            TcpListener::bind((address.host.as_str(), address.port)).await.map_err(cannot)?;
        let address = listener.local_addr().map_err(cannot)?;
        let (end, ended) = watch::channel(());
        let scraped = Arc::new(Notify::new());
        let answers = Arc::new(Answers { metrics, scraped: Arc::clone(&scraped) });
        let task = tokio::spawn(listen(listener, answers, ended));
        Ok(Self { address, scraped, end, task })
    }

    /// Where the metrics are found.
    pub fn url(&self) -> String {
        format!("http://{}{PATH}", self.address)
    }

    /// Waits until the metrics are asked for once more, at most so long, and no longer once
    /// `is_unwanted`.
    pub async fn last_scrape(&self, at_most: Duration, is_unwanted: impl Fn() -> bool) {
        let unwanted = async {
            while !is_unwanted() {
                tokio::time::sleep(INTERRUPT_INTERVAL).await;
            }
        };
        tokio::select! {
            () = self.scraped.notified() => {}
            () = unwanted => {}
            () = tokio::time::sleep(at_most) => {}
        }
    }

    /// Takes no more connections, and lets those that are answered have a moment for it.
    pub async fn close(mut self) {
        // Whoever listened has ended by itself where nobody hears it.
        let _ = self.end.send(());
        let _ = tokio::time::timeout(METRICS_GRACE, &mut self.task).await;
    }
}

impl Drop for Exporter {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn listen(listener: TcpListener, answers: Arc<Answers>, mut ended: watch::Receiver<()>) {
    let mut connections = JoinSet::new();
    loop {
        tokio::select! {
            _ = ended.changed() => break,
            Some(_) = connections.join_next() => {}
            accepted = listener.accept(), if connections.len() < METRICS_CONNECTIONS_MAX => {
                match accepted {
                    Ok((stream, _)) => {
                        connections.spawn(serve(stream, Arc::clone(&answers), ended.clone()));
                    }
                    Err(_) => tokio::time::sleep(ACCEPT_PAUSE).await,
                }
            }
        }
    }
    drop(listener);
    while connections.join_next().await.is_some() {}
}

/// Answers what comes over one connection. That it breaks concerns nobody but its client.
async fn serve(stream: TcpStream, answers: Arc<Answers>, mut ended: watch::Receiver<()>) {
    let service = service_fn(|request| {
        let answer = answers.answer(&request);
        async { answer }
    });
    let mut connection = std::pin::pin!(
        http1::Builder::new()
            .timer(TokioTimer::new())
            .header_read_timeout(METRICS_REQUEST_TIMEOUT)
            .serve_connection(TokioIo::new(stream), service)
    );
    tokio::select! {
        _ = connection.as_mut() => {}
        _ = ended.changed() => {
            connection.as_mut().graceful_shutdown();
            let _ = connection.await;
        }
    }
}

/// What requests are answered from.
struct Answers {
    metrics: Arc<Metrics>,
    scraped: Arc<Notify>,
}

impl Answers {
    fn answer(&self, request: &Request<Incoming>) -> Result<Response<String>, hyper::http::Error> {
        if request.uri().path() != PATH {
            let text = format!("metrics are at {PATH}\n");
            return Response::builder().status(StatusCode::NOT_FOUND).body(text);
        }
        if request.method() != Method::GET {
            let response = Response::builder().status(StatusCode::METHOD_NOT_ALLOWED);
            return response.header(ALLOW, "GET").body(String::new());
        }
        let exposition = accepted(request);
        let Ok(text) = self.metrics.encode(exposition) else {
            let response = Response::builder().status(StatusCode::INTERNAL_SERVER_ERROR);
            return response.body(String::new());
        };
        self.scraped.notify_waiters();
        Response::builder().header(CONTENT_TYPE, exposition.content_type()).body(text)
    }
}

/// The form that the client takes: OpenMetrics where it says so, as Prometheus does.
fn accepted<B>(request: &Request<B>) -> Exposition {
    let accepts = request.headers().get_all(ACCEPT).iter();
    let mut accepts = accepts.filter_map(|value| value.to_str().ok());
    if accepts.any(|value| value.contains("application/openmetrics-text")) {
        Exposition::OpenMetrics
    } else {
        Exposition::PrometheusText
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::io::{AsyncReadExt, AsyncWriteExt};

    async fn exporter() -> Exporter {
        let address = "0".parse().expect("a port");
        Exporter::start(&address, Arc::new(Metrics::new())).await.expect("a port is free")
    }

    /// Sends a request and returns all that is answered.
    async fn ask(exporter: &Exporter, request: &str) -> String {
        let mut stream = TcpStream::connect(exporter.address).await.expect("somebody listens");
        let request = format!("{request}Host: x\r\nConnection: close\r\n\r\n");
        stream.write_all(request.as_bytes()).await.expect("it is taken");
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await.expect("it is text");
        answer
    }

    #[test]
    fn addresses_are_taken_in_many_forms() {
        for (text, expected) in [
            ("9216", "127.0.0.1:9216"),
            (":9216", "127.0.0.1:9216"),
            ("0", "127.0.0.1:0"),
            ("localhost:1", "localhost:1"),
            ("0.0.0.0:9216", "0.0.0.0:9216"),
            ("[::1]:9216", "[::1]:9216"),
            ("db1.example.com:80", "db1.example.com:80"),
        ] {
            let address: ListenAddress = text.parse().expect(text);
            assert_eq!(address.to_string(), expected, "{text}");
        }
        for text in ["", "localhost", "localhost:", "::1", "::1:9216", "65536", "-1", "a:b"] {
            assert!(text.parse::<ListenAddress>().is_err(), "{text}");
        }
    }

    #[tokio::test]
    async fn each_client_gets_the_form_it_takes() {
        let exporter = exporter().await;
        assert!(exporter.url().starts_with("http://127.0.0.1:"), "{}", exporter.url());
        let answer = ask(&exporter, "GET /metrics HTTP/1.1\r\n").await;
        assert!(answer.starts_with("HTTP/1.1 200 OK\r\n"), "{answer}");
        assert!(answer.contains("content-type: text/plain; version=0.0.4"), "{answer}");
        assert!(answer.contains("\n# TYPE restorm_retries_total counter\n"), "{answer}");
        let accept = "Accept: application/openmetrics-text;version=1.0.0,text/plain;q=0.5\r\n";
        let answer = ask(&exporter, &format!("GET /metrics HTTP/1.1\r\n{accept}")).await;
        let expected = "content-type: application/openmetrics-text; version=1.0.0; charset=utf-8";
        assert!(answer.contains(expected), "{answer}");
        assert!(answer.contains("\n# TYPE restorm_retries counter\n"), "{answer}");
        assert!(answer.ends_with("# EOF\n"), "{answer}");
    }

    #[tokio::test]
    async fn nothing_else_is_served() {
        let exporter = exporter().await;
        for (request, expected) in [
            ("GET / HTTP/1.1\r\n", "404 Not Found"),
            ("GET /metrics/ HTTP/1.1\r\n", "404 Not Found"),
            ("POST /metrics HTTP/1.1\r\nContent-Length: 0\r\n", "405 Method Not Allowed"),
            ("nonsense\r\n", "400 Bad Request"),
        ] {
            let answer = ask(&exporter, request).await;
            assert!(answer.starts_with(&format!("HTTP/1.1 {expected}\r\n")), "{request}: {answer}");
            assert!(!answer.contains("restorm_"), "{request}: {answer}");
        }
        let answer = ask(&exporter, "GET /metrics?x=1 HTTP/1.1\r\n").await;
        assert!(answer.starts_with("HTTP/1.1 200 OK\r\n"), "{answer}");
    }

    #[tokio::test]
    async fn a_taken_port_is_an_error_with_a_way_out() {
        let exporter = exporter().await;
        let address = exporter.address.to_string().parse().expect("an address");
        let taken = Exporter::start(&address, Arc::new(Metrics::new())).await;
        let error = taken.err().expect("it is taken");
        assert_eq!(error.kind(), ErrorKind::Usage);
        assert!(error.to_string().contains(&format!("cannot be served on {address}")), "{error}");
        assert!(error.hint_text().is_some_and(|hint| hint.contains("or 0")));
    }

    #[tokio::test]
    async fn an_answer_on_its_way_comes_and_then_nobody_listens() {
        let exporter = exporter().await;
        let address = exporter.address;
        let mut idle = TcpStream::connect(address).await.expect("somebody listens");
        let mut stream = TcpStream::connect(address).await.expect("somebody listens");
        let request = b"GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n";
        let scraped = exporter.last_scrape(METRICS_REQUEST_TIMEOUT, || false);
        let (sent, ()) = tokio::join!(stream.write_all(request), scraped);
        sent.expect("it is taken");
        let began = tokio::time::Instant::now();
        exporter.close().await;
        assert!(
            began.elapsed() < METRICS_GRACE,
            "a connection without a request is not waited for"
        );
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await.expect("it is text");
        assert!(answer.contains("restorm_build_info"), "{answer}");
        assert_eq!(idle.read(&mut [0; 1]).await.unwrap_or(0), 0);
        assert!(TcpStream::connect(address).await.is_err());
    }
}
