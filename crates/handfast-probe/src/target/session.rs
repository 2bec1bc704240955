//! Sessions of 2025-11-25 and older, one by one: a request under any id, as anybody, by any verb. Every id that a server
//! hands out on the way is remembered, so that none is left open.

use handfast_wire::{
    message::{Notification, Object, Request},
    meta,
};

use super::{Body, Call, Era, Fault, Reply, Target, Wire, handshake};
use crate::identity::Who;

/// A verb of Streamable HTTP.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verb {
    /// Sends a message.
    Post,
    /// Attaches a stream.
    Get,
    /// Ends a session.
    Delete,
}

impl Verb {
    /// As it stands on the wire.
    pub fn word(self) -> &'static str {
        match self {
            Self::Post => "POST",
            Self::Get => "GET",
            Self::Delete => "DELETE",
        }
    }
}

/// A request that names its session itself.
#[derive(Debug, Clone, Copy)]
pub struct Visit<'v> {
    /// The verb.
    pub verb: Verb,
    /// The session id, if any.
    pub session: Option<&'v str>,
    /// What is posted.
    pub call: Option<&'v Call>,
}

/// A request as it goes out.
pub(super) struct Sending<'s> {
    pub(super) verb: Verb,
    pub(super) session: Option<&'s str>,
    pub(super) version: Option<&'s str>,
    pub(super) body: Option<String>,
    /// What the answer must be an answer to.
    pub(super) request: Option<&'s Request>,
}

/// What came back.
#[derive(Debug, Clone)]
pub struct Visited {
    /// The answer.
    pub reply: Reply,
    /// The session id that came with it.
    pub issued: Option<String>,
    /// A stream is attached.
    pub stream: bool,
}

impl Visited {
    /// What stands for an answer that never came.
    pub fn lost(fault: Fault) -> Self {
        Self { reply: Reply::new(None, Body::Fault(fault)), issued: None, stream: false }
    }
}

/// Whether the server issues session ids, and in which revision it speaks then.
#[derive(Debug, Clone, PartialEq)]
pub enum Issues {
    /// It does, in this revision.
    Ids(String),
    /// It answers `initialize` without one.
    None,
    /// It does not answer `initialize` with a result. Holds what it says.
    NoOlderRevision(String),
    /// The answer says neither yes nor no.
    Unclear(Reply),
    /// There is no HTTP here, and so there are no session ids.
    NoHttp,
}

impl Target {
    /// Sends one request under the session id that it names.
    pub async fn visit(&mut self, who: Who, visit: &Visit<'_>) -> Visited {
        let identity = self.identities.of(who).clone();
        let opens = visit.call.is_some_and(|call| call.method == "initialize");
        let version = self.older.clone().filter(|_| !opens);
        let request = visit.call.map(|call| self.request_of(&identity, call, false));
        let timeout = self.options.timeout;
        let Wire::Http(http) = &mut self.wire else {
            return Visited::lost(Fault::NotMcp("there is no HTTP here".to_owned()));
        };
        let sending = Sending {
            verb: visit.verb,
            session: visit.session,
            version: version.as_deref(),
            body: request.as_ref().map(|request| request.to_value().to_string()),
            request: request.as_ref(),
        };
        let visited = http.visit(&identity, &sending, timeout).await;
        self.remember(who, visit, &visited);
        visited
    }

    /// Tells the server that a session is ready. Whether it was taken shows in the next call.
    pub async fn ready(&mut self, who: Who, session: &str) {
        let note = Notification { method: "notifications/initialized".to_owned(), params: Object::new() };
        let (identity, version) = (self.identities.of(who).clone(), self.older.clone());
        let (timeout, body) = (self.options.timeout, Some(note.to_value().to_string()));
        if let Wire::Http(http) = &mut self.wire {
            let session = Some(session);
            let sending = Sending { verb: Verb::Post, session, version: version.as_deref(), body, request: None };
            http.visit(&identity, &sending, timeout).await;
        }
    }

    /// What has to be ended later: every id that came from the server, and every id under which something was done.
    fn remember(&mut self, who: Who, visit: &Visit<'_>, visited: &Visited) {
        let worked = matches!(visited.reply.body, Body::Result(_)) || visited.stream;
        let used = visit.session.filter(|_| worked).map(str::to_owned);
        for id in visited.issued.iter().cloned().chain(used) {
            if self.open.len() < MOST_OPEN && !self.open.contains(&(who, id.clone())) {
                self.open.push((who, id));
            }
        }
    }

    /// Whether `initialize` is answered with a session id, whatever the handshake said: "discover does not tell whether
    /// legacy sessions exist". Asked once; the answer is kept.
    pub async fn issues_sessions(&mut self) -> Issues {
        if let Some(known) = &self.issues {
            return known.clone();
        }
        let found = self.ask_for_session().await;
        if let Issues::Ids(version) = &found {
            self.older = Some(version.clone());
        }
        self.issues = Some(found.clone());
        found
    }

    async fn ask_for_session(&mut self) -> Issues {
        if !matches!(self.wire, Wire::Http(_)) {
            return Issues::NoHttp;
        }
        let mut said = String::new();
        for version in meta::LEGACY {
            let call = handshake::opening(version);
            let visited = self.visit(Who::A, &Visit { verb: Verb::Post, session: None, call: Some(&call) }).await;
            match (&visited.reply.body, visited.issued) {
                (Body::Result(result), Some(_)) => {
                    let agreed = result.get("protocolVersion").and_then(|version| version.as_str()).unwrap_or(version);
                    // It goes into a header of every request.
                    return Issues::Ids(agreed.chars().filter(char::is_ascii_graphic).take(32).collect());
                }
                (Body::Result(_), None) => return Issues::None,
                // A version that is not spoken is answered by an error; one older may be.
                (Body::Error(error), _) => said = format!("JSON-RPC error {}: {}", error.code, error.message),
                (Body::Bare(_), _) if matches!(visited.reply.status, Some(400..=428)) => {
                    return Issues::NoOlderRevision(format!("HTTP {}", visited.reply.status.unwrap_or_default()));
                }
                _ => return Issues::Unclear(visited.reply),
            }
        }
        Issues::NoOlderRevision(said)
    }

    /// The `initialize` that opens a session.
    pub fn opening(&self) -> Call {
        handshake::opening(self.older.as_deref().unwrap_or(meta::LEGACY[0]))
    }

    /// The status and text of a page beside the endpoint, as somebody.
    ///
    /// # Errors
    /// [`Fault`] where nothing usable came.
    pub async fn page(&mut self, who: Who, path: &str) -> Result<(u16, String), Fault> {
        let identity = self.identities.of(who).clone();
        let timeout = self.options.timeout;
        match &mut self.wire {
            Wire::Http(http) => http.page(&identity, path, timeout).await,
            Wire::Stdio(_) => Err(Fault::NotMcp("there is no HTTP here".to_owned())),
        }
    }

    /// Ends the sessions that the handshake opened, so that those under test are alone. They are opened again when an
    /// ordinary call needs them.
    pub async fn set_aside(&mut self) {
        let Wire::Http(http) = &mut self.wire else { return };
        if matches!(self.era, Era::Legacy(_)) && !self.aside {
            self.aside = true;
            http.end_sessions(&self.era, &self.identities).await;
        }
    }

    /// Whether streams are listened to for a while before they are taken for attached.
    pub fn listen_longer(&mut self, longer: bool) {
        if let Wire::Http(http) = &mut self.wire {
            http.listens_longer = longer;
        }
    }

    /// Ends every session that was opened by a [`Visit`].
    pub async fn end_visits(&mut self) {
        let open = std::mem::take(&mut self.open);
        let Wire::Http(http) = &mut self.wire else { return };
        for (who, id) in open {
            // A server that refuses to end a session keeps it; that is its business here.
            http.end(self.identities.of(who), &id, self.older.as_deref()).await;
        }
    }
}

/// More than any check opens.
const MOST_OPEN: usize = 200;
