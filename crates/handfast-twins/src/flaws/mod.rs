//! The list of twins. A new flaw is a file here, a `mod` line and an entry; what it leaves out is one guard.

mod approvals;
mod bindings;
mod business_rules;
mod closing;
mod cursors;
mod display_state;
mod doors;
mod flawed;
mod identity;
mod loopholes;
mod mac_inside;
mod mixed_up;
mod names;
mod noguard;
mod opaque;
mod refusals;
mod sessions;
mod shared;
mod sound;
mod state_marks;
mod surfaces;
mod tasks;
mod tokens;
mod unbound;
mod unsigned;
mod unsteady;

use std::fmt;

use crate::{
    gate::Gate,
    guards::Guards,
    http::Host,
    legacy::Legacy,
    server::Server,
    sessions::{SessionGuards, Sessions},
    signed,
};

/// A server that can be started by name.
pub struct Twin {
    /// What it is started by.
    pub name: &'static str,
    /// What it forgot, or how it is odd, in one sentence.
    pub summary: &'static str,
    build: Build,
}

enum Build {
    Modern(fn() -> Box<dyn Guards>),
    /// The sound server, behind a gate that knows tokens.
    Gated(fn() -> Box<dyn Gate>),
    Legacy,
    Sessions(fn() -> Box<dyn SessionGuards>),
    /// Sessions, and the sound server of the stateless revision at the same place.
    Both(fn() -> Box<dyn SessionGuards>),
}

/// Every twin, the five of the beginning first.
pub fn all() -> &'static [Twin] {
    &TWINS
}

/// The twin of this name. `fixed` is another name of `sound`.
pub fn find(name: &str) -> Option<&'static Twin> {
    let name = if name == "fixed" { "sound" } else { name };
    all().iter().find(|twin| twin.name == name)
}

/// The server that odd servers are honest with.
pub(crate) fn honest_base() -> Host {
    Host::Modern(Box::new(Server::new(flawed::plain())))
}

impl Twin {
    /// The token that this server takes for a text: most take the text itself, and some sign it.
    pub fn token(&self, text: &str) -> String {
        match self.build {
            Build::Gated(gate) if gate().knows_signed() => signed::token(text),
            _ => text.to_owned(),
        }
    }

    /// A fresh server of this kind, with a key and a memory of its own.
    pub(crate) fn host(&self) -> Host {
        match self.build {
            Build::Modern(guards) => Host::Modern(Box::new(Server::new(guards()))),
            Build::Gated(gate) => Host::Modern(Box::new(Server::gated(sound::plain(), gate()))),
            Build::Legacy => Host::Legacy(Legacy::default()),
            Build::Sessions(guards) => Host::Sessions(Box::new(Sessions::new(guards())), None),
            Build::Both(guards) => {
                let modern = Box::new(Server::new(sound::plain()));
                Host::Sessions(Box::new(Sessions::new(guards())), Some(modern))
            }
        }
    }
}

impl fmt::Debug for Twin {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Twin").field("name", &self.name).finish_non_exhaustive()
    }
}

const fn twin(name: &'static str, summary: &'static str, guards: fn() -> Box<dyn Guards>) -> Twin {
    Twin { name, summary, build: Build::Modern(guards) }
}

const fn gated(name: &'static str, summary: &'static str, gate: fn() -> Box<dyn Gate>) -> Twin {
    Twin { name, summary, build: Build::Gated(gate) }
}

const fn keeps(name: &'static str, summary: &'static str, guards: fn() -> Box<dyn SessionGuards>) -> Twin {
    Twin { name, summary, build: Build::Sessions(guards) }
}

const fn speaks_both(name: &'static str, summary: &'static str, guards: fn() -> Box<dyn SessionGuards>) -> Twin {
    Twin { name, summary, build: Build::Both(guards) }
}

#[rustfmt::skip]
static TWINS: [Twin; 158] = [
    twin("flawed", "handles have no owner, states have no signature", flawed::plain),
    twin("sound", "every guard in place", sound::plain),
    twin("noguard", "keeps nothing, so any handle is honoured; its states are sound", noguard::guards),
    twin("opaque", "states are scrambled, not authenticated", opaque::guards),
    Twin { name: "legacy", summary: "2025-11-25 and older: sessions, no handles, no states", build: Build::Legacy },
    // How a state is written and read
    twin("ignores-signature", "the state has a tag that is never verified", unsigned::ignores_signature),
    twin("digest-tag", "the state's tag is a digest of its body, which takes no key", unsigned::digest_tag),
    twin("raw-json-state", "the state is plain JSON text", unsigned::raw_json),
    twin("jwt-state", "the state is a JWT that is decoded and never verified", unsigned::jwt),
    twin("zlib-state", "the state is compressed JSON, unsigned", unsigned::zlib),
    twin("tool-error-refusals", "sound; a bad state is refused inside a tool result", refusals::tool_error_refusals),
    twin("polite", "sound; says no in results that are no errors", refusals::polite),
    twin("polite-flawed", "flawed; says no in results that are no errors", refusals::polite_flawed),
    twin("crashes-on-forgery", "a changed state looks like a crash; just a checksum", refusals::crashes_on_forgery),
    twin("breaks-on-flip", "unsigned; what does not parse is answered in the parser's words", refusals::breaks_on_flip),
    twin("asks-again", "a bad state is ignored, and it asks again", refusals::asks_again),
    twin("ignores-state", "any state is accepted and none is read", refusals::ignores_state),
    twin("business-rules", "unsigned; every field that matters is validated, words are not", business_rules::guards),
    twin("mac-inside", "sound; the tag is a member of the state, unknown members are ignored", mac_inside::guards),
    twin("mac-subset", "the tag is a member of the state and does not cover how much is done", mac_inside::subset),
    twin("alg-none", "the state is a JWT that is verified unless its header says `none`", loopholes::alg_none),
    twin("optional-signature", "the state's tag is verified where there is one", loopholes::optional_signature),
    twin("pipe-state", "the state is words between bars, unsigned", unsigned::pipe),
    twin("display-state", "sound; the state names a record, its other members are for show", display_state::guards),
    twin("no-binding", "the state is signed and ends, and is good for anybody and anything", unbound::no_binding),
    twin("any-request", "the state is signed and its caller's, and does for any request", unbound::any_request),
    twin("no-expiry", "the state is signed and bound, and never ends", unbound::no_expiry),
    twin("brief-states", "sound; states end within two seconds, and say so", unbound::brief),
    twin("brief-states-for-ever", "states say that they end within a second, and never do", unbound::brief_for_ever),
    twin("replayable", "sound states, and each does as often as it is sent", unbound::replayable),
    twin("writes-late", "over HTTP, that a state was used is written down after it has done its work", unbound::writes_late),
    twin("state-binds-token", "the state is bound to the token that was shown, not to whom it is for", state_marks::binds_token),
    twin("secret-in-state", "sound states, with a token of the server's own in them, and an address", state_marks::secret_in_state),
    twin("mac-only-client-id", "the state is bound to the OAuth client instead of the user", unbound::client_only),
    twin("answers-first", "sound states; it acts on answers to what it has not asked", unbound::answers_first),
    // What is asked, and where
    twin("two-rounds", "sound; asks twice", sound::two_rounds),
    twin("two-rounds-flawed", "asks twice, and signs only the first round's state", surfaces::two_rounds_flawed),
    twin("prompt-state", "tools are sound; the prompt's state is unsigned", surfaces::prompt_state),
    twin("resource-state", "tools are sound; the resource's state is unsigned", surfaces::resource_state),
    twin("url-elicitation", "sound; asks for a visit to a page", sound::url_elicitation),
    twin("asks-sampling-and-roots", "sound; asks for a completion and for the roots", sound::sampling_and_roots),
    twin("bare-answers", "flawed; asks in the older form and takes only the bare value", flawed::bare_answers),
    twin("names-object", "sound; asks which workspace is meant", approvals::names_object),
    twin("any-name", "asks which workspace is meant, and takes the name of any", approvals::any_name),
    twin("ignores-decline", "only an unticked box is a no; whoever declines or dismisses the question agrees", approvals::ignores_decline),
    twin("asks-undeclared", "asks a client what it cannot answer", approvals::asks_undeclared),
    // What a handle opens, and for whom
    twin("get-or-create", "a handle never minted is honoured, and objects are shared", names::get_or_create),
    twin("partitioned", "a handle never minted is honoured, in a name space of one's own", names::partitioned),
    twin("one-door", "append_note forgets the owner", doors::one_door),
    twin("silent-writer", "append_note forgets the owner and answers only `ok`", doors::silent_writer),
    twin("resource-door", "the resource template forgets the owner", doors::resource_door),
    twin("prompt-door", "the prompt forgets the owner", doors::prompt_door),
    twin("several", "sound; compares several workspaces, and copies from one to another", sound::several),
    twin("first-of-several", "of several handles only the first is looked at", doors::first_of_several),
    twin("unchecked-source", "whose the workspace is that is copied from, nobody asks", doors::unchecked_source),
    twin("mirrored", "sound; a header repeats the handle of a call, and is compared with it", sound::mirrored),
    twin("trusts-header", "over HTTP, the owner of the handle in a header is asked about, and the one in the body is opened", doors::trusts_header),
    twin("ignores-identity", "nobody is asked who they are", identity::ignores_identity),
    twin("any-token", "a token is demanded, and any will do", identity::any_token),
    twin("lists-everything", "sound; read_workspace always carries everything of everybody", sound::lists_everything),
    twin("lists-everything-flawed", "as above, and flawed", flawed::lists_everything),
    twin("one-shot", "sound; a handle reads once", unsteady::one_shot),
    twin("one-shot-flawed", "a handle reads once, for anybody", unsteady::one_shot_flawed),
    twin("private-value", "sound; shows only a number of its own choice for each object", sound::private_value),
    twin("private-value-flawed", "as above, and flawed", flawed::private_value),
    twin("silent-view", "append_note forgets the owner and says `ok`; only a count can be read", doors::silent_view),
    twin("listed", "sound; lists everybody's workspaces to everybody, who may read them", shared::listed),
    twin("names-owner", "sound; tells a stranger in a complete answer whom to ask", sound::names_owner),
    twin("share-link", "sound; makes links with which anybody may read a workspace", shared::share_link),
    twin("any-client", "handles are bound to the user, by whatever client", bindings::any_client),
    twin("other-tenants", "handles are bound within a tenant, and serve every other", bindings::other_tenants),
    twin("binds-token", "handles are bound to the very token", bindings::binds_token),
    twin("binds-connection", "over HTTP, handles are bound to the very connection", bindings::binds_connection),
    twin("counted-handles", "handles count up, and serve whoever has them", bindings::counted),
    // What is over, and what is shared
    twin("closing", "sound; workspaces can be closed", closing::closing),
    twin("closes-nothing", "a workspace is said to be closed, and its handle goes on working", closing::closes_nothing),
    twin("reuses-numbers", "the number of what was closed is given to something else", closing::reuses_numbers),
    twin("short-lived", "sound; a handle lives for two seconds without being used", closing::short_lived),
    twin("outlives-expiry", "as above, by its own words, and nobody looks at the clock", closing::outlives_expiry),
    twin("heeds-sessions", "a handle is good under one `Mcp-Session-Id` alone", mixed_up::heeds_sessions),
    twin("memory", "sound; keeps notes for each caller, without a handle", mixed_up::memory),
    twin("shared-memory", "keeps the notes of all callers in one place", mixed_up::shared_memory),
    twin("misroutes", "an answer goes to whoever waits under the id of its request", mixed_up::misroutes),
    // Lists in pages
    twin("pages", "sound; lists a caller's workspaces in pages", sound::pages),
    twin("plain-cursors", "the offset in a cursor is believed", cursors::plain),
    twin("cursors-for-anybody", "a cursor goes on with the list of whoever was given it", cursors::for_anybody),
    twin("cursors-for-any-list", "a cursor of one list goes on in another", cursors::for_any_list),
    // How it speaks
    twin("refuses-by-protocol", "sound; a bad handle is a JSON-RPC error", sound::refuses_by_protocol),
    twin("structured-only", "sound; handles stand only in structured content", sound::structured_only),
    twin("record-handles", "sound; a handle is a record that anybody can read", sound::record_handles),
    twin("unsaid-lifetime", "sound; does not say how long a handle lives", sound::unsaid_lifetime),
    twin("endless", "sound; nothing ends a workspace, and nothing is said of its end", sound::endless),
    twin("numeric-handles", "sound; handles are numbers that count up", sound::numeric_handles),
    twin("numeric-handles-flawed", "flawed; handles are numbers that count up", flawed::numeric_handles),
    twin("text-only-handles", "sound; handles stand only in sentences", sound::text_only_handles),
    twin("text-only-handles-flawed", "flawed; handles stand only in sentences", flawed::text_only_handles),
    twin("renamed-handles", "sound; emits `id`, takes `workspaceId`", sound::renamed_handles),
    twin("renamed-handles-flawed", "flawed; emits `id`, takes `workspaceId`", flawed::renamed_handles),
    twin("nested-handles", "sound; takes handles inside an object", sound::nested_handles),
    twin("nested-handles-flawed", "flawed; takes handles inside an object", flawed::nested_handles),
    twin("unlabelled", "sound; what is minted holds nothing of the caller's, and no owner is shown", sound::unlabelled),
    twin("unlabelled-flawed", "as above, and flawed", flawed::unlabelled),
    twin("task", "flawed; answers tools by tasks", flawed::task),
    twin("tasks", "sound; answers tools by tasks", sound::tasks),
    twin("task-for-anybody", "whoever has the id of a task is told how it ended", tasks::for_anybody),
    twin("task-cancelled-by-anybody", "whoever has the id of a task ends it", tasks::cancelled_by_anybody),
    twin("tasks-listed", "sound; lists the tasks of a caller to that caller", sound::own_tasks_listed),
    twin("tasks-listed-to-anybody", "lists everybody's tasks to everybody", tasks::listed_to_anybody),
    twin("task-of-one-token", "a task is lost with the token with which it was begun", tasks::of_one_token),
    twin("counted-tasks", "the ids of tasks count up", tasks::counted),
    twin("flaky", "every second foreign use is refused", unsteady::flaky),
    twin("noisy", "sound; on stdio it prints between messages and answers out of order", sound::noisy),
    twin("slow-start", "sound; on stdio it answers only after 300 ms", sound::slow_start),
    // What it heeds of a token
    gated("gated", "sound; knows its tokens: whose, for whom, until when", || Box::new(tokens::Sound)),
    gated("optional-token", "whoever shows no token is let in, and a bad one is refused", || Box::new(tokens::OptionalToken)),
    gated("open-gate", "lets in whoever comes, with any token or none", || Box::new(tokens::OpenGate)),
    gated("any-audience", "a token for another server is as good as one of its own", || Box::new(tokens::AnyAudience)),
    gated("client-as-audience", "a token for the client itself is taken", || Box::new(tokens::ClientAsAudience)),
    gated("never-expires", "a token that was good once is good for ever", || Box::new(tokens::NeverExpires)),
    gated("token-in-query", "takes a token from the query string", || Box::new(tokens::TokenInQuery)),
    gated("signed-tokens", "sound; its tokens are JSON Web Tokens", || Box::new(tokens::Signed)),
    gated("unverified-signature", "believes a JSON Web Token without verifying it", || Box::new(tokens::UnverifiedSignature)),
    gated("no-challenge", "refuses without saying where a token comes from", || Box::new(tokens::NoChallenge)),
    // Sessions of 2025-11-25 and older
    keeps("sessions", "2025-11-25 and older; sound sessions that hold notes", || Box::new(sessions::Sound)),
    keeps("session-binds-token", "sessions are bound to the very token", || Box::new(sessions::BindsToken)),
    keeps("revives-unknown", "a request with an unknown session id is carried out", || Box::new(sessions::RevivesUnknown)),
    keeps("adopts-unknown", "an unknown session id is opened under the id that was sent", || Box::new(sessions::AdoptsUnknown)),
    keeps("adopts-on-refusal", "an unknown session id is refused, and works from then on", || Box::new(sessions::AdoptsOnRefusal)),
    keeps("adopts-client-id", "`initialize` takes the session id that the client chose", || Box::new(sessions::AdoptsClientId)),
    keeps("mints-on-refusal", "a refusal hands out the id of a session that works", || Box::new(sessions::MintsOnRefusal)),
    keeps("unbound-sessions", "a session serves whoever has its id", || Box::new(sessions::Unbound)),
    keeps("unbound-get", "anybody's stream is attached to a session by its id", || Box::new(sessions::UnboundGet)),
    keeps("unbound-delete", "anybody ends a session by its id", || Box::new(sessions::UnboundDelete)),
    keeps("unbound-writes", "whoever has the id of a session writes into it", || Box::new(sessions::UnboundWrites)),
    keeps("unbound-listing", "whoever has the id of a session is told its tools, and may call none", || Box::new(sessions::UnboundListing)),
    keeps("missing-accepted", "a request without a session id is carried out", || Box::new(sessions::MissingAccepted)),
    keeps("single-session-fallback", "without a session id the only open session is meant", || Box::new(sessions::SingleSessionFallback)),
    keeps("outlives-delete", "DELETE is answered and ends nothing", || Box::new(sessions::OutlivesDelete)),
    keeps("counter-ids", "session ids count up", || Box::new(sessions::CounterIds)),
    keeps("encoded-counter-ids", "session ids count up, in base64", || Box::new(sessions::EncodedCounterIds)),
    keeps("unverified-ids", "session ids are signed, and the signature is not verified", || Box::new(sessions::UnverifiedIds)),
    keeps("pointer-ids", "session ids are addresses, and used again", || Box::new(sessions::PointerIds)),
    keeps("timestamp-ids", "session ids are the time in milliseconds", || Box::new(sessions::TimestampIds)),
    keeps("snowflake-ids", "session ids are the time in milliseconds, and a machine", || Box::new(sessions::SnowflakeIds)),
    keeps("object-ids", "session ids are the time, a process and a counter", || Box::new(sessions::ObjectIds)),
    keeps("health-lists-sessions", "a page that everybody may read tells which sessions are open", || Box::new(sessions::HealthListsSessions)),
    keeps("checks-token-once", "whether a token has expired is asked at `initialize` only", || Box::new(sessions::ChecksTokenOnce)),
    keeps("known-tokens", "sound sessions, and it knows its tokens: whose, and for whom", || Box::new(sessions::KnownTokens)),
    keeps("checks-audience-once", "for whom a token was issued is asked at `initialize` only", || Box::new(sessions::ChecksAudienceOnce)),
    keeps("no-token-in-session", "within a session nobody is asked for a token", || Box::new(sessions::NoTokenInSession)),
    keeps("unknown-is-bad-request", "an unknown session id is refused with 400", || Box::new(sessions::UnknownIs(400))),
    keeps("unknown-is-unauthorized", "an unknown session id is refused with 401", || Box::new(sessions::UnknownIs(401))),
    keeps("unknown-is-ok", "an unknown session id is refused with 200", || Box::new(sessions::UnknownIs(200))),
    keeps("session-oracle", "somebody else's session is refused with 403, an unknown one with 404", || Box::new(sessions::Oracle403)),
    keeps("one-session-each", "sound; who opens a session loses the one before", || Box::new(sessions::OneEach)),
    keeps("two-replicas", "two processes take requests in turn, each with sessions of its own", || Box::new(sessions::TwoReplicas)),
    speaks_both("dual-era", "sound; speaks the stateless revision, and sessions at the same place", || Box::new(sessions::Sound)),
    speaks_both("dual-era-unbound", "as above, and a session serves whoever has its id", || Box::new(sessions::Unbound)),
];
