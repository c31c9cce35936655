//! `homeostat.dev/hello:TAG`: a web server that answers `hello TAG from <pod name>`.

use std::convert::Infallible;
use std::io::{Error, Result, Write as _};

use bytes::Bytes;
use http::Response;
use http_body_util::Full;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use tokio::net::TcpListener;

use super::{Image, Missing, this_binary};

/// Listens here unless `PORT` says otherwise.
const PORT: u16 = 8080;

#[expect(clippy::unnecessary_wraps, reason = "a row of the catalogue may fail")]
pub(super) fn image(tag: &str) -> std::result::Result<Image, Missing> {
    Ok(Image { entrypoint: this_binary(&["hello", tag]), ..Image::default() })
}

/// Serves on `$HOST:$PORT` until told to stop; `HOST` is the Pod's address unless the Pod says otherwise.
pub(super) async fn serve(args: &[String]) -> Result<()> {
    let tag = args.first().map_or("latest", String::as_str);
    let pod = std::env::var("HOSTNAME").unwrap_or_default();
    let port = match std::env::var("PORT") {
        Ok(text) => {
            text.parse().map_err(|_| Error::other(format!("PORT={text:?} is not a port number")))?
        }
        Err(_) => PORT,
    };
    let address = std::env::var("HOST").unwrap_or_else(|_| "127.0.0.1".into());
    let listener = TcpListener::bind((address.as_str(), port))
        .await
        .map_err(|error| Error::other(format!("cannot listen on {address}:{port}: {error}")))?;
    // For whoever reads its log; it serves without readers, too.
    let _ = writeln!(std::io::stdout(), "listening on {address}:{port}");
    let greeting = Bytes::from(format!("hello {tag} from {pod}\n"));
    let stop = super::builtin::stop();
    tokio::pin!(stop);
    loop {
        let stream = tokio::select! {
            biased;
            stopped = &mut stop => return stopped,
            accepted = listener.accept() => accepted?.0,
        };
        let greeting = greeting.clone();
        let answer = service_fn(move |_request| {
            let answer = Response::new(Full::new(greeting.clone()));
            async { Ok::<_, Infallible>(answer) }
        });
        tokio::spawn(
            hyper::server::conn::http1::Builder::new()
                .serve_connection(TokioIo::new(stream), answer),
        );
    }
}
