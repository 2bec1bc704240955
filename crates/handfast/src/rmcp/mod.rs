//! The seam for servers on the official SDK, `rmcp`: wrap a handler, and every state that leaves it is sealed, every state
//! that comes back is opened, before the handler sees it. The handler itself reads and writes plain text.
//!
//! ```
//! # use handfast::{Audience, Keys, rmcp::Sealed, seal::Sealer};
//! # #[derive(Clone)] struct Desk;
//! # impl rmcp::ServerHandler for Desk {}
//! # let (desk, keys) = (Desk, Keys::dangerous_for_this_process_only());
//! let sealer = Sealer::new(keys, "https://mcp.example.com/mcp".parse::<Audience>()?);
//! let desk = Sealed::http(desk, sealer);
//! # let _: &dyn Fn(Sealed<Desk>) = &|desk| drop(rmcp::ServerHandler::get_info(&desk));
//! # let _ = desk;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! Three more things are done for the handler. It never sees `inputResponses` that it did not ask for: not without a state
//! that was sealed when it asked, not under other keys than it asked for; so an approval cannot be given before it is
//! asked for. It is told nothing of a state that is refused: the client gets one error, always the same. And what may
//! happen once only ([`Sealed::once`]) happens once.

mod declared;
mod forward;

use std::{collections::BTreeMap, sync::Arc};

use rmcp::{
    ErrorData, RoleServer, ServerHandler,
    model::{ClientCapabilities, ErrorCode, InputRequiredResult, InputResponses, JsonObject, ProtocolVersion},
    service::RequestContext,
};
use serde_json::Value;

use crate::{
    audit::{AuditEvent, AuditSink, DangerousNoAudit},
    caller::Caller,
    seal::{Method, Progress, RequestDigest, SealError, Sealer, State, StateContext, StateDenial, StateRefused},
    store::Store,
};

/// A handler whose states are sealed. It is a handler itself: put it in the place of the one that it wraps.
///
/// Every method of [`ServerHandler`] as of `rmcp` 3.11 is passed on to the handler; what a later version adds is not,
/// until this says so.
#[derive(Clone)]
pub struct Sealed<H> {
    handler: H,
    seam: Arc<Seam>,
}

struct Seam {
    sealer: Sealer,
    who: Who,
    left_out: BTreeMap<String, Vec<String>>,
    once: BTreeMap<String, Arc<dyn Store>>,
    audit: Arc<dyn AuditSink>,
}

/// Says who is calling; `None` where it cannot be told.
type Who = Box<dyn Fn(&RequestContext<RoleServer>) -> Option<Caller> + Send + Sync>;

impl<H: ServerHandler> Sealed<H> {
    /// For a server over HTTP. The caller is the [`Caller`] that stands in the extensions of the HTTP request: the layer
    /// that verifies tokens puts it there (`request.extensions_mut().insert(caller)`). Where none stands there, no state
    /// is sealed and none is opened.
    ///
    /// A key that dies with this process is warned of, by a `tracing` event: after a restart, and by another replica, everybody who was asked
    /// is refused.
    #[must_use]
    pub fn http(handler: H, sealer: Sealer) -> Self {
        if sealer.keys().are_for_this_process_only() {
            tracing::warn!(
                target: "handfast",
                "states are sealed with a key that dies with this process: after a restart, and by other replicas, they are \
                 refused; `handfast keys new` makes one that stays"
            );
        }
        Self::by(handler, sealer, |context| {
            context.extensions.get::<http::request::Parts>()?.extensions.get::<Caller>().cloned()
        })
    }

    /// For a server on standard input and output, whose one user is whoever started it.
    #[must_use]
    pub fn stdio(handler: H, sealer: Sealer) -> Self {
        Self::by(handler, sealer, |_| Some(Caller::anonymous()))
    }

    /// For a server that knows its callers in another way. Take nothing from what the client asserts.
    #[must_use]
    pub fn by(
        handler: H,
        sealer: Sealer,
        who: impl Fn(&RequestContext<RoleServer>) -> Option<Caller> + Send + Sync + 'static,
    ) -> Self {
        let (left_out, audit) = (BTreeMap::new(), Arc::new(DangerousNoAudit));
        let seam = Seam { sealer, who: Box::new(who), left_out, once: BTreeMap::new(), audit };
        Self { handler, seam: Arc::new(seam) }
    }

    /// Arguments of a tool or prompt that may change between the question and the answer. Where a tool and a prompt have
    /// the same name, it is said of both.
    ///
    /// # Panics
    /// The wrapper has been cloned already.
    #[must_use]
    pub fn leaving_out(mut self, name: &str, arguments: &[&str]) -> Self {
        let arguments = arguments.iter().map(|argument| (*argument).to_owned());
        self.seam_mut().left_out.entry(name.to_owned()).or_default().extend(arguments);
        self
    }

    /// Tools, prompts and resources (by their URI) whose states are used up when they come back with an answer to everything
    /// that was asked. Until then the same state may be sent again, and the handler sees none of the answers; from then on
    /// it is refused, on every server that has this store.
    ///
    /// # Panics
    /// The wrapper has been cloned already.
    #[must_use]
    pub fn once(mut self, store: Arc<dyn Store>, names: &[&str]) -> Self {
        let names = names.iter().map(|name| ((*name).to_owned(), store.clone()));
        self.seam_mut().once.extend(names);
        self
    }

    /// Keeps an event for every state that comes back, with the exact reason where it is refused. A state whose event cannot
    /// be kept is refused.
    ///
    /// # Panics
    /// The wrapper has been cloned already.
    #[must_use]
    pub fn audited(mut self, audit: Arc<dyn AuditSink>) -> Self {
        self.seam_mut().audit = audit;
        self
    }

    fn seam_mut(&mut self) -> &mut Seam {
        Arc::get_mut(&mut self.seam).expect("it is set up before it is cloned")
    }
}

/// The answer to a question of this key, if the person accepted it: a `decline` is none, and neither is a `cancel`.
#[must_use]
pub fn accepted<'r>(responses: Option<&'r InputResponses>, key: &str) -> Option<&'r Value> {
    const NOTHING: &Value = &Value::Null;
    let response = responses?.get(key)?;
    (response.get("action").and_then(Value::as_str) == Some("accept"))
        .then(|| response.get("content").unwrap_or(NOTHING))
}

/// One request on its way to the handler, and what its answer is to be sealed with.
struct Round<'s> {
    seam: &'s Seam,
    request: Request,
    /// What the client said that it can be asked.
    declared: Option<ClientCapabilities>,
    caller: Option<Caller>,
    progress: Option<Progress>,
}

/// What has become of a state that came back.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Use {
    /// It may come back as often as anybody likes.
    Free,
    /// It may come back once, and has.
    Up,
    /// It may come back once, and waits for the rest of the answers.
    Waits,
}

/// What a state is bound to.
struct Request {
    method: Method,
    name: String,
    arguments: [u8; 32],
}

/// What a state says before what the handler had it say: whether it said anything. Where a handler asks without a state of
/// its own, one is sent all the same: the questions stand in it.
const NO_STATE: &[u8] = &[0];
const STATE: u8 = 1;

impl Seam {
    /// Opens what the client sent back. From here on the handler may see it.
    async fn opened<'s>(
        &'s self,
        (method, name, arguments): (Method, &str, Option<&JsonObject>),
        state: &mut Option<String>,
        responses: &mut Option<InputResponses>,
        context: &RequestContext<RoleServer>,
    ) -> Result<Option<Round<'s>>, ErrorData> {
        let modern = context.protocol_version().is_some_and(|version| version >= ProtocolVersion::V_2026_07_28);
        if !modern {
            // Older revisions ask for nothing in this way, so nothing comes back.
            (*state, *responses) = (None, None);
            return Ok(None);
        }
        let left_out = self.left_out.get(name).map_or(&[] as &[String], Vec::as_slice);
        let left_out: Vec<&str> = left_out.iter().map(String::as_str).collect();
        let digest = RequestDigest::new(method, name, arguments, &left_out);
        let request = Request { method, name: name.to_owned(), arguments: digest.arguments() };
        let declared = context.client_capabilities();
        let mut round = Round { seam: self, request, caller: (self.who)(context), declared, progress: None };
        match state.take() {
            None => *responses = None,
            Some(presented) => {
                let opened = round.open(&presented, responses.as_ref()).await;
                let (opened, used) = opened.map_err(|_: StateRefused| frozen())?;
                if let Some(responses) = responses {
                    responses.retain(|key, _| opened.asked().any(|asked| asked == key));
                }
                if used == Use::Waits {
                    // What happens once does not happen on half an answer, which could be sent again and again.
                    *responses = None;
                }
                *state = plain(opened.bytes());
                round.progress = Some(opened.progress());
            }
        }
        Ok(Some(round))
    }
}

impl Round<'_> {
    async fn open(&self, presented: &str, responses: Option<&InputResponses>) -> Result<(State, Use), StateRefused> {
        let (caller, request) = (self.caller.as_ref(), self.request.digest());
        let answer = match caller {
            Some(caller) => self.taken_back(presented, responses, &StateContext { caller, request: &request }).await,
            None => Err(StateDenial::ForeignPrincipal.into()),
        };
        let (nobody, denial) = (Caller::anonymous(), answer.as_ref().err().map(StateRefused::denial));
        let event = AuditEvent::of_state(caller.unwrap_or(&nobody), self.seam.sealer.keys(), &request, denial);
        self.seam.audit.record(&event).map_err(|_| StateDenial::Unavailable)?;
        answer
    }

    async fn taken_back(
        &self,
        presented: &str,
        responses: Option<&InputResponses>,
        context: &StateContext<'_>,
    ) -> Result<(State, Use), StateRefused> {
        let opened = self.seam.sealer.open(presented, context)?;
        let answered = opened.asked().all(|key| responses.is_some_and(|given| given.contains_key(key)));
        match self.seam.once.get(&self.request.name) {
            Some(store) if answered => Ok((opened.once(&**store).await?, Use::Up)),
            Some(_) => Ok((opened.replayable(), Use::Waits)),
            None => Ok((opened.replayable(), Use::Free)),
        }
    }

    /// Seals what the handler asks with.
    fn sealed(&self, mut asks: InputRequiredResult) -> Result<InputRequiredResult, ErrorData> {
        declared::answerable(&asks, self.declared.as_ref())?;
        let Some(caller) = &self.caller else {
            tracing::error!(
                target: "handfast",
                "a handler asks, and there is no `handfast::Caller` in the extensions of the HTTP request to seal its state for"
            );
            return Err(internal("the server does not know who is calling"));
        };
        let asked: Vec<&str> = asks.input_requests.iter().flatten().map(|(key, _)| key.as_str()).collect();
        let state = match &asks.request_state {
            Some(state) => [&[STATE], state.as_bytes()].concat(),
            None => NO_STATE.to_vec(),
        };
        let request = self.request.digest();
        let (sealer, context) = (&self.seam.sealer, StateContext { caller, request: &request });
        let envelope = match self.progress {
            None => sealer.seal(&state, &asked, &context),
            Some(progress) => sealer.seal_next(&state, &asked, &context, progress),
        };
        let envelope = envelope.map_err(|error: SealError| internal(&error.to_string()))?;
        asks.request_state = Some(envelope.expose().to_owned());
        Ok(asks)
    }
}

impl Request {
    fn digest(&self) -> RequestDigest<'_> {
        RequestDigest::of_digest(self.method, &self.name, self.arguments)
    }
}

/// What the handler had sealed.
fn plain(state: &[u8]) -> Option<String> {
    // Only what a handler wrote as text is sealed here.
    match state.split_first() {
        Some((&STATE, text)) => String::from_utf8(text.to_vec()).ok(),
        _ => None,
    }
}

/// Whatever it was.
fn frozen() -> ErrorData {
    ErrorData::new(ErrorCode(StateRefused::CODE), StateRefused::MESSAGE, None)
}

fn internal(told: &str) -> ErrorData {
    ErrorData::internal_error(told.to_owned(), None)
}
