//! Why a verdict is what it is: one slug for each reason, for pipelines to match on. `docs/verdicts.md` explains them.

use serde::Serialize;

macro_rules! reasons {
    ($($(#[$doc:meta])* $name:ident = $slug:literal,)*) => {
        /// Why a verdict is what it is. The slugs are stable: pipelines match on them.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        pub enum Reason { $($(#[$doc])* $name,)* }

        impl Reason {
            /// Every reason, for documentation and tests.
            pub const ALL: &'static [Self] = &[$(Self::$name,)*];

            /// The stable text.
            pub fn slug(self) -> &'static str {
                match self { $(Self::$name => $slug,)* }
            }
        }
    };
}

reasons! {
    /// A handle minted for A was honoured for B, and A's data came back.
    HandleNotBound = "handle-not-bound",
    /// A's handle was refused to B.
    HandleBound = "handle-bound",
    /// The marker that would show whose object came back shows it for handles that were never A's as well.
    HandleWitnessUnusable = "handle-witness-unusable",
    /// A handle that was never minted was honoured: no validation at all, so nothing to be unbound from.
    ForgedHandleHonoured = "forged-handle-honoured",
    /// B's use of A's handle was accepted, but nothing shows that it reached A's object.
    CrossUseUnattributable = "cross-use-unattributable",
    /// To the server, A and B are the same caller, or it looks at no credential at all.
    IdentitiesNotDistinguished = "identities-not-distinguished",
    /// B could not mint and use a handle of its own.
    SecondIdentityNotLive = "second-identity-not-live",
    /// A handle opened its object after that was ended, or after its time was over.
    EndedHandleServed = "ended-handle-served",
    /// The handle of what is over was refused.
    EndedHandleRefused = "ended-handle-refused",
    /// No tool says that it ends what a handle names, or none may be called.
    NoToolEndsAHandle = "no-tool-ends-a-handle",
    /// The handle of what is over opened something that was made later.
    HandleRepointed = "handle-repointed",
    /// The handle of what is over led to nothing that was made later.
    HandleNotRepointed = "handle-not-repointed",
    /// The server does not say how long a handle lives.
    NoLifetimeStated = "no-lifetime-stated",
    /// A handle that a client made up led others to the same object.
    InventedHandleShared = "invented-handle-shared",
    /// A handle that a client made up led nobody else to the same object.
    InventedHandleApart = "invented-handle-apart",
    /// A handle that a client made up was refused.
    InventedHandleRefused = "invented-handle-refused",
    /// A live handle was refused in another way than one that nobody minted.
    HandleOracle = "handle-oracle",
    /// A live handle was refused as one that nobody minted.
    HandlesRefusedAlike = "handles-refused-alike",
    /// What a handle opened depended on a session header.
    SessionHeaderHeeded = "session-header-heeded",
    /// What a handle opened did not depend on a session header.
    SessionHeaderIgnored = "session-header-ignored",
    /// The server does not speak the stateless revision.
    NotStateless = "not-stateless",
    /// What A gave to keep without a handle came back to B.
    AmbientStateShared = "ambient-state-shared",
    /// What A gave to keep without a handle did not come back to B.
    AmbientStateApart = "ambient-state-apart",
    /// No tool shows, without a handle, what another was given to keep.
    NoAmbientState = "no-ambient-state",
    /// One user was given the answer to another's request.
    ResponseMisrouted = "response-misrouted",
    /// Everybody was given the answer to their own request.
    ResponsesRouted = "responses-routed",
    /// The advice on handles is not followed.
    AdviceNotFollowed = "advice-not-followed",
    /// The advice on handles is followed.
    AdviceFollowed = "advice-followed",
    /// No tool, resource template or prompt takes a value that a tool hands out.
    NoToolConsumesAHandle = "no-tool-consumes-a-handle",
    /// No tool hands out a value that looks like a handle.
    NoToolMintsAHandle = "no-tool-mints-a-handle",
    /// No call was answered with `input_required` and a `requestState`.
    NothingReturnedInputRequired = "nothing-returned-input-required",
    /// The honest retry did not succeed, so a refusal would show nothing.
    UntouchedRetryDidNotSucceed = "untouched-retry-did-not-succeed",
    /// Every altered state was refused.
    StateIntegrityHeld = "state-integrity-held",
    /// The state is not consulted, so accepting an altered one shows nothing.
    StateWitnessUnusable = "state-witness-unusable",
    /// A random state was accepted.
    RandomStateAccepted = "random-state-accepted",
    /// A state with another value in a field that matters was accepted.
    AlteredStateAccepted = "altered-state-accepted",
    /// A state was accepted with a change that any authentication would have noticed.
    StateNotAuthenticated = "state-not-authenticated",
    /// An altered state was neither refused nor used: the server asked again.
    BadStateIgnored = "bad-state-ignored",
    /// An altered state made the server fall over: that shows nothing about integrity.
    RefusedByCrash = "refused-by-crash",
    /// A session of A's was served to B.
    SessionNotBound = "session-not-bound",
    /// A session of A's was refused to B.
    SessionBound = "session-bound",
    /// A request with a session id that nobody issued was carried out.
    UnknownSessionServed = "unknown-session-served",
    /// A session id that nobody issued was refused.
    UnknownSessionRefused = "unknown-session-refused",
    /// An unknown session id was refused with another status than 404.
    UnknownSessionNot404 = "unknown-session-status",
    /// A session works under an id that the client chose.
    ClientChosenSession = "client-chosen-session",
    /// A session id that was handed out with a refusal works.
    RefusalMintedSession = "refusal-minted-session",
    /// A request without a session id was carried out, by a server that issues them.
    SessionNotNeeded = "session-not-needed",
    /// A session works after it was ended.
    EndedSessionServed = "ended-session-served",
    /// The next session id was foretold.
    SessionForetold = "session-foretold",
    /// A page beside the endpoint tells a session id.
    SessionDisclosed = "session-id-disclosed",
    /// A session works with a token whose time is over.
    SessionOutlivedToken = "session-outlived-token",
    /// A's handle is not refused to B, so that its use by somebody else says nothing more.
    HandleNotRefused = "handle-not-refused",
    /// Each use uses a handle up, so that no second use of it tells anything.
    HandleUsedUp = "handle-used-up",
    /// The next handle was foretold, and served whoever foretold it.
    HandleForetold = "handle-foretold",
    /// No handle was foretold, or it was worth nothing.
    ForetoldForNobody = "foretold-for-nobody",
    /// What is A's is refused to A with a new token.
    Overbound = "overbound",
    /// What is A's serves A, however A comes.
    FollowsItsOwner = "follows-its-owner",
    /// What is A's is refused to A elsewhere than where it was got.
    Lost = "lost",
    /// The profile names no token of A's that was issued later.
    NeedsIdentityNewToken = "needs-identity:a-new-token",
    /// The profile names no token of A's for another client.
    NeedsIdentityOtherClient = "needs-identity:same-user-other-client",
    /// The profile names no user of another tenant.
    NeedsIdentityOtherTenant = "needs-identity:other-tenant",
    /// The weakness is not there, and would have been seen.
    SessionGuardHeld = "session-guard-held",
    /// Ids that nobody issued are honoured as well, and nothing shows whose session a request was carried out in.
    SessionWitnessUnusable = "session-witness-unusable",
    /// The server issues no session ids.
    NoSessionIssued = "no-session-issued",
    /// There are session ids over HTTP only.
    NeedsHttp = "needs-http",
    /// So few session ids are possible that they can be tried out.
    FewIdsPossible = "few-ids-possible",
    /// A state was accepted from somebody, or for something, that it was not issued for.
    StateNotBound = "state-not-bound",
    /// A state does for nobody and nothing but what it was issued for.
    StateBound = "state-bound",
    /// No second request of the same caller could be made that gets a state of its own.
    NoOtherRequest = "no-other-request",
    /// A state was accepted on another request, and did there what it was issued for.
    StateCarriesItsRequest = "state-carries-its-request",
    /// A state was accepted on another request, and nothing shows which of the two was carried out.
    ForeignRequestUnattributable = "foreign-request-unattributable",
    /// A state was accepted after the time at which it says that it ends.
    StateOutlivedExpiry = "state-outlived-expiry",
    /// A state is refused after its time.
    StateEnds = "state-ends",
    /// A state that was used did its work once more.
    StateUsedAgain = "state-used-again",
    /// A state that was used is refused.
    StateSingleUse = "state-single-use",
    /// A state that was used was accepted again, and nothing shows that anything was done again.
    StateAcceptedTwice = "state-accepted-twice",
    /// A state holds a secret or personal data that can be read.
    SecretInState = "secret-in-state",
    /// No secret and no personal data are seen in a state.
    NoSecretSeen = "no-secret-seen",
    /// It takes longer than the run may wait.
    NeedsWait = "needs-wait",
    /// What needs an approval was done, and nobody was asked.
    ApprovalNotAsked = "approval-not-asked",
    /// What a user declined was done.
    DeclinedYetDone = "declined-yet-done",
    /// Nothing is done without an approval, or with another's.
    ApprovalHeld = "approval-held",
    /// An answer to the question about one object was taken for another.
    ForeignAnswerTaken = "foreign-answer-taken",
    /// No question says in its answers what it is about.
    QuestionsNameNothing = "questions-name-nothing",
    /// A client was asked what it had not declared that it can answer.
    UndeclaredKindAsked = "undeclared-kind-asked",
    /// A client is asked nothing that it did not declare.
    DeclaredKindsOnly = "declared-kinds-only",
    /// No question asks for an approval.
    NoApprovalAsked = "no-approval-asked",
    /// What is declined is answered as what is approved, and nothing shows whether it was done.
    ApprovalWitnessUnusable = "approval-witness-unusable",
    /// The question carries no state: an answer that nobody asked for is the same request as one that was asked for.
    QuestionWithoutState = "question-without-state",
    /// A task of A's answered to B.
    TaskNotBound = "task-not-bound",
    /// A's task was refused to B.
    TaskBound = "task-bound",
    /// A list of tasks shows A's to B.
    TaskListedToOthers = "task-listed-to-others",
    /// There is no list of tasks, or none that shows one user's to another.
    TasksNotListed = "tasks-not-listed",
    /// A's task was refused to A with a new token.
    TaskOverbound = "task-overbound",
    /// A's task is A's with a new token as well.
    TaskReachable = "task-reachable",
    /// The next task id was foretold.
    TaskForetold = "task-foretold",
    /// No task id was foretold.
    TaskNotForetold = "task-not-foretold",
    /// No tool answers with a task.
    NoTaskReturned = "no-task-returned",
    /// What is done to a task leaves no trace that its owner could see.
    TaskWitnessUnusable = "task-witness-unusable",
    /// A cursor with another offset was taken.
    AlteredCursorTaken = "altered-cursor-taken",
    /// A cursor of A's went on with A's list for B.
    CursorNotBound = "cursor-not-bound",
    /// A cursor of one list was taken for another.
    ForeignCursorTaken = "foreign-cursor-taken",
    /// A cursor does for nothing but what it was given for.
    CursorHeld = "cursor-held",
    /// Nothing in the cursor can be read.
    CursorNotReadable = "cursor-not-readable",
    /// The pages do not show what a cursor does.
    CursorWitnessUnusable = "cursor-witness-unusable",
    /// No list comes in pages.
    NoCursorGiven = "no-cursor-given",
    /// What should have been refused, so that the refusal could be looked at, was not.
    NothingWasRefused = "nothing-was-refused",
    /// The server does not take this verb.
    VerbNotOffered = "verb-not-offered",
    /// The profile names no expired credential of A's.
    NeedsIdentityExpired = "needs-identity:expired",
    /// A token that should be worthless here was taken: it was issued for somebody else.
    ForeignTokenTaken = "foreign-token-taken",
    /// A token whose time is over was taken.
    ExpiredTokenTaken = "expired-token-taken",
    /// No token is needed.
    NoTokenNeeded = "no-token-needed",
    /// Callers without a token are served as guests, and nothing shows what a guest may do.
    GuestsAreServed = "guests-are-served",
    /// A token was taken that nobody issued: it is A's under another signature, or under none.
    ForgedTokenTaken = "forged-token-taken",
    /// A's token, or a state, bears no signature that is seen.
    NoSignatureSeen = "no-signature-seen",
    /// A token was taken from the query string.
    TokenTakenFromQuery = "token-taken-from-query",
    /// What should open nothing was refused.
    TokenRefused = "token-refused",
    /// A refusal does not lead to the server's metadata, and nothing else does.
    NoChallenge = "no-challenge",
    /// Nothing shows that tokens come from an OAuth issuer, so there is nothing that a refusal could lead to.
    NoOauthSeen = "no-oauth-seen",
    /// A refusal, or a well-known page, leads to the server's metadata.
    ChallengeThere = "challenge-there",
    /// The profile names no token of A's for another server.
    NeedsIdentityWrongAudience = "needs-identity:wrong-audience",
    /// The profile names no token of A's for the client itself.
    NeedsIdentityClientIdAudience = "needs-identity:client-id-audience",
    /// No MCP server answered at the address.
    NoServerAnswered = "no-server-answered",
    /// The command cannot be run.
    TargetNotExecutable = "target-not-executable",
    /// The server refused identity A: it needs a real credential.
    NeedsIdentityA = "needs-identity:a",
    /// A control did not do what it must, so the experiment is invalid.
    ControlFailed = "control-failed",
    /// The answer says neither yes nor no.
    Unclear = "unclear",
    /// The same experiment gave different answers.
    Unstable = "unstable",
    /// No answer in time.
    TimedOut = "timed-out",
    /// The bound on calls was reached.
    CallLimit = "call-limit",
    /// The server was lost on the way.
    Unreachable = "unreachable",
    /// The probe itself failed.
    ProbeBug = "probe-bug",
}

impl Serialize for Reason {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.slug())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slugs_are_unique() {
        let mut slugs: Vec<_> = Reason::ALL.iter().map(|reason| reason.slug()).collect();
        slugs.sort_unstable();
        slugs.dedup();
        assert_eq!(slugs.len(), Reason::ALL.len());
    }
}
