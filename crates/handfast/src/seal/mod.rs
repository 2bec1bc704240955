//! `requestState` that only this server, for this caller, for this request, for a short while, will take back.
//!
//! A tool that needs more input answers with a state, which the client echoes. It is written by whoever can write a
//! request, so the specification (2026-07-28, multi round-trip requests) wants its integrity protected, wants it bound
//! to the principal and the originating request, and short-lived. [`Sealer::seal`] makes an envelope of it that says
//! nothing to anybody, [`Sealer::open`] takes it back.
//!
//! ```
//! # use handfast::{Audience, Caller, Keys, Principal, seal::{RequestDigest, Sealer, StateContext}};
//! # let keys = Keys::dangerous_for_this_process_only();
//! # let caller = |subject| Principal::new("https://id.example".parse()?, subject).map(Caller::trusted);
//! let sealer = Sealer::new(keys, "https://mcp.example.com/mcp".parse::<Audience>()?);
//! let (alice, bob) = (caller("alice")?, caller("bob")?);
//! let arguments = serde_json::json!({"order": 17}).as_object().cloned();
//! let request = RequestDigest::tool("checkout", arguments.as_ref());
//!
//! let envelope = sealer.seal(b"step 2", &["confirm"], &StateContext { caller: &alice, request: &request })?;
//!
//! let opened = sealer.open(envelope.expose(), &StateContext { caller: &alice, request: &request })?;
//! assert_eq!(opened.asked().collect::<Vec<_>>(), ["confirm"]);
//! assert_eq!(opened.replayable().bytes(), b"step 2");
//! let refused = sealer.open(envelope.expose(), &StateContext { caller: &bob, request: &request });
//! assert_eq!(refused.expect_err("it is not his").to_string(), "Invalid or expired requestState");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod binding;
mod canonical;
mod declared;
mod denial;
mod envelope;
mod request;

use std::{fmt, ops::Range, sync::Arc, time::Duration};

use thiserror::Error;

pub use declared::undeclared;
pub use denial::{StateDenial, StateRefused};
pub use request::{Method, RequestDigest};

use crate::{
    caller::{Audience, Caller},
    clock::{Clock, Horizon, SystemClock, Timestamp, later},
    keys::{KeyId, Keys},
    store::{SpendId, Store},
};

/// Seals states, and opens them.
pub struct Sealer {
    keys: Keys,
    audience: Audience,
    options: SealerOptions,
    horizon: Horizon,
}

/// How long states live, and by which clock.
#[derive(Clone)]
pub struct SealerOptions {
    /// How long one state lives: as long as a person may take to answer.
    pub lifetime: Duration,
    /// How long all rounds of one request may take together, counted from the first state. No later state lives longer.
    pub all_rounds: Duration,
    /// By how much the clock of the replica that sealed a state may be ahead of that which opens it.
    pub skew: Duration,
    /// The clock that judges.
    pub clock: Arc<dyn Clock>,
}

impl Default for SealerOptions {
    fn default() -> Self {
        Self {
            lifetime: Duration::from_secs(10 * 60),
            all_rounds: Duration::from_secs(60 * 60),
            skew: Duration::from_secs(30),
            clock: Arc::new(SystemClock),
        }
    }
}

/// For whom and for what a state is: the caller as the transport has proven it, and the request.
///
/// The id of the token and its scopes do not count: whoever gets a new token goes on where they were.
#[derive(Debug, Clone, Copy)]
pub struct StateContext<'a> {
    /// Who asks.
    pub caller: &'a Caller,
    /// What they ask for.
    pub request: &'a RequestDigest<'a>,
}

/// A sealed state, as it stands in `requestState`. Nothing of it can be read.
#[derive(Clone, PartialEq, Eq)]
pub struct Envelope(String);

impl Envelope {
    /// The text, for the one place that sends it.
    #[must_use]
    pub fn expose(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Envelope {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "Envelope({} characters)", self.0.len())
    }
}

/// How far a request has got: which round it is, and when all of them must be over.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Progress {
    round: u16,
    deadline: Timestamp,
}

impl Progress {
    /// Which round the state was sealed in, counted from 1.
    #[must_use]
    pub fn round(self) -> u16 {
        self.round
    }
}

/// Why a state was not sealed.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum SealError {
    /// It is too large for an envelope.
    #[error("the state is too large: with what it is bound to it may have 64 KiB")]
    TooLarge,
    /// There are too many questions, or their keys are too long.
    #[error("a state asks at most 64 questions, with keys of at most 256 bytes")]
    TooManyQuestions,
    /// There have been too many rounds, or they took too long.
    #[error("the request has taken too many rounds, or too long: it must begin again")]
    TooManyRounds,
}

/// A state that was found authentic, for this caller and this request, and in time. Whether it may be used more than once
/// is for its server to say: by [`Opened::once`] or by [`Opened::replayable`].
pub struct Opened {
    state: State,
    id: SpendId,
    expires: Timestamp,
    /// By any clock that may open it, its time is over then.
    until: Timestamp,
}

/// What a server had sealed.
pub struct State {
    /// Of the whole envelope; what the server had sealed is a part of it, and so are the keys of the questions.
    bytes: Vec<u8>,
    state: Range<usize>,
    asked: Range<usize>,
    progress: Progress,
}

impl Sealer {
    /// For the server with this canonical URI (or, on stdio, this name), with the usual times.
    #[must_use]
    pub fn new(keys: Keys, audience: Audience) -> Self {
        Self::with(keys, audience, SealerOptions::default())
    }

    /// The same with times of one's own.
    #[must_use]
    pub fn with(keys: Keys, audience: Audience, options: SealerOptions) -> Self {
        Self { keys, audience, options, horizon: Horizon::new() }
    }

    /// Seals the first state of a request, with the keys of the `inputRequests` that go out with it.
    ///
    /// # Errors
    /// There is too much of it.
    pub fn seal(&self, state: &[u8], asked: &[&str], context: &StateContext<'_>) -> Result<Envelope, SealError> {
        let now = self.options.clock.now();
        let deadline = later(now, self.options.all_rounds);
        self.sealed(state, asked, context, Progress { round: 1, deadline }, now)
    }

    /// Seals a later one, after a round that has got so far.
    ///
    /// # Errors
    /// There is too much of it, or the time of all rounds is over.
    pub fn seal_next(
        &self,
        state: &[u8],
        asked: &[&str],
        context: &StateContext<'_>,
        after: Progress,
    ) -> Result<Envelope, SealError> {
        let round = after.round.checked_add(1).ok_or(SealError::TooManyRounds)?;
        self.sealed(state, asked, context, Progress { round, ..after }, self.options.clock.now())
    }

    fn sealed(
        &self,
        state: &[u8],
        asked: &[&str],
        context: &StateContext<'_>,
        progress: Progress,
        // As the clock says, not as late as it has ever been: after a jump forth and back nothing may live for longer.
        issued: Timestamp,
    ) -> Result<Envelope, SealError> {
        let expires = later(issued, self.options.lifetime).min(progress.deadline);
        if expires <= issued {
            return Err(SealError::TooManyRounds);
        }
        let Progress { round, deadline } = progress;
        let terms = envelope::Terms { issued, expires, deadline, round, asked };
        let binding = |out: &mut Vec<u8>| binding::write(out, &self.audience, context.caller, context.request);
        envelope::seal(&terms, binding, state, &self.keys).map(Envelope)
    }

    /// Opens what a client has sent back.
    ///
    /// # Errors
    /// It is not what this server has sealed, not for this caller or this request, or not in time. What a caller is told
    /// is the same for all of that.
    pub fn open(&self, presented: &str, context: &StateContext<'_>) -> Result<Opened, StateRefused> {
        let authentic = envelope::open(presented, &self.keys)?;
        let contents = authentic.contents()?;
        binding::check(contents.binding, &self.audience, context.caller, context.request)?;
        let now = self.now();
        if contents.issued > later(now, self.options.skew) {
            return Err(StateDenial::NotYetValid.into());
        }
        if contents.expires <= now {
            return Err(StateDenial::Expired.into());
        }
        let progress = Progress { round: contents.round, deadline: contents.deadline };
        let (id, expires) = (SpendId(contents.id), contents.expires);
        let (asked, length) = (contents.asked.len(), contents.state.len());
        let (bytes, asked, state) = authentic.into_parts(asked, length);
        let until = later(expires, self.options.skew);
        Ok(Opened { state: State { bytes, state, asked, progress }, id, expires, until })
    }

    /// The keys that it seals with.
    #[cfg(feature = "rmcp")]
    pub(crate) fn keys(&self) -> &Keys {
        &self.keys
    }

    /// The id of the key under which this was sealed, as its header says; nothing of it has been verified.
    ///
    /// # Errors
    /// It has not the form of an envelope.
    pub fn key_of(presented: &str) -> Result<KeyId, StateRefused> {
        Ok(envelope::key_of(presented)?)
    }

    fn now(&self) -> Timestamp {
        self.horizon.reach(self.options.clock.now())
    }
}

impl Opened {
    /// The keys of the questions that were asked with this state. Answers under other keys were not asked for.
    pub fn asked(&self) -> impl Iterator<Item = &str> {
        self.state.asked()
    }

    /// How far the request has got.
    #[must_use]
    pub fn progress(&self) -> Progress {
        self.state.progress
    }

    /// When its time is over.
    #[must_use]
    pub fn expires(&self) -> Timestamp {
        self.expires
    }

    /// The state, this once: whoever presents it again, anywhere, is refused from now on. For what must not happen twice,
    /// and for rounds that must not be gone back to.
    ///
    /// # Errors
    /// It was used before, or the store that would know does not answer.
    pub async fn once(self, store: &dyn Store) -> Result<State, StateRefused> {
        match store.spend(&self.id, self.until).await {
            Ok(true) => Ok(self.state),
            Ok(false) => Err(StateDenial::Spent.into()),
            Err(error) => Err(StateRefused::unavailable(error)),
        }
    }

    /// The state, as often as it is presented while its time lasts. What it leads to must not matter when it happens twice.
    #[must_use]
    pub fn replayable(self) -> State {
        self.state
    }
}

impl State {
    /// What the server had sealed.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        &self.bytes[self.state.clone()]
    }

    /// The keys of the questions that were asked with it.
    pub fn asked(&self) -> impl Iterator<Item = &str> {
        envelope::asked(&self.bytes[self.asked.clone()])
    }

    /// How far the request has got, for the next round.
    #[must_use]
    pub fn progress(&self) -> Progress {
        self.progress
    }
}

impl fmt::Debug for Opened {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Opened").field("state", &self.state).field("expires", &self.expires).finish_non_exhaustive()
    }
}

impl fmt::Debug for State {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("State").field("progress", &self.progress).finish_non_exhaustive()
    }
}

impl fmt::Debug for Sealer {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Sealer").field("keys", &self.keys).field("audience", &self.audience).finish_non_exhaustive()
    }
}
