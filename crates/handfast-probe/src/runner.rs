//! A run: connect, list, explore, then every check in turn, and the report. Whatever the server does, there is a report.

use std::time::Duration;

use secrecy::ExposeSecret;

use crate::{
    access,
    check::Check,
    checks,
    clock::{self, Deadline},
    coverage,
    discovery::{self, Map},
    disposition::{self, Disposition, Unclear},
    identity::{Identities, Who},
    profile::Profile,
    redact::Redactor,
    report::{CheckReport, HandshakeReport, Report, TargetReport, Tool, Totals, VERSION},
    surface::{self, Surface},
    target::{self, Address, Era, Fault, Handshake, NoTarget, Options, Reply, Target},
    trial::{Session, Trial},
    verdict::{Halt, Reason, Verdict},
};

/// What to run, on what, within which bounds.
#[derive(Debug)]
pub struct Run {
    /// Where the server is.
    pub address: Address,
    /// Who calls.
    pub identities: Identities,
    /// Bounds and transport options.
    pub options: Options,
    /// What the operator knows.
    pub profile: Profile,
    /// The checks, in order.
    pub checks: Vec<&'static Check>,
    /// Where else the same server is to be had.
    pub replicas: Vec<reqwest::Url>,
    /// Also call tools that look destructive.
    pub include_destructive: bool,
    /// Calls that the run may make, listings apart.
    pub max_calls: usize,
    /// Time for the whole run.
    pub max_time: Duration,
    /// Time that a check may wait for something to be over.
    pub max_wait: Duration,
    /// How far clocks may be apart that verifiers excuse: what is accepted so long after its end is excused by nothing.
    pub leeway: Duration,
}

/// The options cannot work: the operator has to change them.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct Unusable(pub String);

impl Run {
    /// A run of every check with the default bounds.
    pub fn new(address: Address, identities: Identities) -> Self {
        Self {
            address,
            identities,
            options: Options::default(),
            profile: Profile::default(),
            checks: checks::all().collect(),
            replicas: Vec::new(),
            include_destructive: false,
            max_calls: 2000,
            max_time: Duration::from_secs(300),
            max_wait: Duration::ZERO,
            leeway: Duration::from_secs(61),
        }
    }

    /// Tests the server. `progress` hears what is going on.
    ///
    /// # Errors
    /// [`Unusable`] when the options cannot work; everything else is in the report.
    pub async fn probe(&self, progress: &dyn Fn(&str)) -> Result<Report, Unusable> {
        let deadline = Deadline::after(self.max_time);
        progress("connecting");
        let (target, handshake, surface) = match self.open(deadline).await? {
            Ok(opened) => opened,
            Err(halt) => return Ok(self.nothing_tested(halt, None, deadline)),
        };
        let shown = self.handshake(&target, &handshake, &surface);
        let endpoint = target.endpoint();
        let mut session = self.session(target, surface, deadline, progress);
        let mut notes = Vec::new();

        let mut checks = Vec::new();
        match discovery::explore(&mut Trial::new(&mut session)).await {
            Ok(()) => {
                for check in &self.checks {
                    progress(check.id);
                    let judgement = (check.run)(&mut Trial::new(&mut session)).await;
                    checks.push(CheckReport::new(check, judgement));
                }
            }
            Err(halt) => checks.extend(self.checks.iter().map(|check| CheckReport::halted(check, halt.clone()))),
        }
        if let Some((line, count)) = session.target.noise() {
            let line = session.redactor.excerpt(&line, 120);
            notes.push(format!(
                "the server printed {count} lines on standard output that are no messages; the first: {line}"
            ));
        }
        for (name, who, _) in self.profile.identities.sources().filter(|(_, who, _)| Who::UNUSED.contains(who)) {
            notes.push(format!("no check of this version tries [identities.{name}]: {} was not seen", who.label()));
        }
        let tries = |family: &str| self.checks.iter().any(|check| check.id.starts_with(family));
        let access = access::look(&mut Trial::new(&mut session), tries).await.unwrap_or_default();
        notes.extend(checks::handle::tidy(&mut Trial::new(&mut session)).await);
        let calls = session.calls();
        let redactor = std::mem::take(&mut session.redactor);
        session.close().await;
        let mut report = self.report(checks, Some(shown), calls, notes, deadline);
        report.target.endpoint = Some(endpoint);
        report.access = access;
        Ok(report.clean(&redactor))
    }

    /// Finds the handles of the server and returns what it lists and what was found.
    ///
    /// # Errors
    /// [`Unusable`] when the options cannot work; the inner error when the server cannot be explored.
    pub async fn discover(&self, progress: &dyn Fn(&str)) -> Result<Result<(Surface, Map), Halt>, Unusable> {
        let deadline = Deadline::after(self.max_time);
        let (target, _, surface) = match self.open(deadline).await? {
            Ok(opened) => opened,
            Err(halt) => return Ok(Err(self.cleaned(halt))),
        };
        let mut session = self.session(target, surface, deadline, progress);
        let explored = discovery::explore(&mut Trial::new(&mut session)).await;
        let found = (session.surface.clone(), session.map.clone());
        session.close().await;
        Ok(explored.map(|()| found).map_err(|halt| self.cleaned(halt)))
    }

    /// Everything that no output may show: the credentials, the values of added headers, the query of the URL.
    pub fn redactor(&self) -> Redactor {
        let mut redactor = Redactor::default();
        for who in [Who::A, Who::B, Who::Impostor].into_iter().chain(Who::NAMED).chain(Who::FORGED) {
            let identity = self.identities.of(who);
            // A synthetic identity is no secret, and a reader wants to see it come back.
            if let (Some(credential), false) = (identity.credential(), identity.synthetic) {
                redactor.hide(credential, who.label());
            }
        }
        for header in &self.options.http.headers {
            redactor.hide(header.value.expose_secret(), &format!("header {}", header.name));
        }
        if let Address::Http(url) = &self.address {
            redactor.hide(url.query().unwrap_or_default(), "the URL");
            // Short values hide nothing, and would blot out half of the report.
            let values = url.query_pairs().filter(|(_, value)| value.len() >= 6);
            values.for_each(|(_, value)| redactor.hide(&value, "the URL"));
        }
        redactor
    }

    pub(crate) fn cleaned(&self, halt: Halt) -> Halt {
        Halt { detail: self.redactor().excerpt(&halt.detail, LONGEST_DETAIL), ..halt }
    }

    pub(crate) fn session<'r>(
        &'r self,
        target: Target,
        surface: Surface,
        deadline: Deadline,
        progress: &'r dyn Fn(&str),
    ) -> Session<'r> {
        Session::new(target, surface, self, deadline, progress)
    }

    pub(crate) async fn open(
        &self,
        deadline: Deadline,
    ) -> Result<Result<(Target, Handshake, Surface), Halt>, Unusable> {
        let Some(left) = deadline.left() else {
            return Ok(Err(Halt::errored(Reason::TimedOut, "--max-time is zero")));
        };
        let opening = async {
            let (mut target, handshake) = match target::connect(&self.address, &self.identities, &self.options).await {
                Ok(connected) => connected,
                Err(NoTarget::Setup(reason)) => return Err(Unusable(reason)),
                Err(missing) => return Ok(Err(halt_of(missing, self.identities.given()))),
            };
            match surface::list(&mut target, &handshake).await {
                Ok(surface) => {
                    if let (false, Some(name)) = (surface.cut, self.profile.unlisted_tool(&surface)) {
                        target.close().await;
                        let name = name.escape_default();
                        return Err(Unusable(format!(
                            "the profile names the tool `{name}`, and the server lists none of that name: correct it or take it out (handfast discover shows the tools)"
                        )));
                    }
                    Ok(Ok((target, handshake, surface)))
                }
                Err(reply) => {
                    let mut halt = unlisted(&reply, self.identities.given());
                    // Several processes, each with sessions of its own, refuse by turns.
                    if matches!(target.era(), Era::Legacy(_)) && halt.verdict == Verdict::Skipped {
                        for _ in 0..LISTED_AGAIN {
                            if surface::list(&mut target, &handshake).await.is_ok() {
                                halt = Halt::errored(
                                    Reason::Unstable,
                                    format!("once so and once otherwise: {}", halt.detail),
                                );
                                break;
                            }
                        }
                    }
                    target.close().await;
                    Ok(Err(halt))
                }
            }
        };
        tokio::time::timeout(left, opening).await.unwrap_or_else(|_| {
            Ok(Err(Halt::errored(
                Reason::TimedOut,
                "the time for the whole run was used up before the server was listed",
            )))
        })
    }

    fn handshake(&self, target: &Target, handshake: &Handshake, surface: &Surface) -> HandshakeReport {
        let (era, version) = Report::era_shown(target.era());
        HandshakeReport {
            era,
            version,
            server: handshake.server.clone(),
            tools: surface.tools.len(),
            prompts: surface.prompts.len(),
            resources: surface.templates.len(),
            identities: if self.identities.given() { "given" } else { "synthetic" },
        }
    }

    fn nothing_tested(&self, halt: Halt, handshake: Option<HandshakeReport>, deadline: Deadline) -> Report {
        let checks = self.checks.iter().map(|check| CheckReport::halted(check, halt.clone())).collect();
        self.report(checks, handshake, 0, Vec::new(), deadline).clean(&self.redactor())
    }

    fn report(
        &self,
        checks: Vec<CheckReport>,
        handshake: Option<HandshakeReport>,
        calls: usize,
        notes: Vec<String>,
        deadline: Deadline,
    ) -> Report {
        Report {
            version: VERSION,
            tool: Tool { name: "handfast", version: env!("CARGO_PKG_VERSION") },
            target: TargetReport {
                address: self.address.shown(),
                endpoint: None,
                transport: match self.address {
                    Address::Http(_) => "http",
                    Address::Stdio { .. } => "stdio",
                },
            },
            totals: Totals::of(&checks),
            coverage: coverage::of(&checks, handshake.as_ref()),
            access: Vec::new(),
            handshake,
            checks,
            notes,
            calls,
            duration_ms: u64::try_from(deadline.elapsed().as_millis()).unwrap_or(u64::MAX),
            finished_at: clock::unix_seconds(),
        }
    }
}

/// What to do about a server that refuses A.
fn advice(given: bool) -> &'static str {
    match given {
        true => "is the credential of A expired, or issued for another server?",
        false => "give real credentials with --identity-a and --identity-b",
    }
}

fn halt_of(missing: NoTarget, given: bool) -> Halt {
    match missing {
        NoTarget::NotExecutable(text) => Halt::errored(Reason::TargetNotExecutable, text),
        NoTarget::NoServerAnswered(text) => Halt::skipped(Reason::NoServerAnswered, text),
        NoTarget::Unreachable(text) => Halt::errored(Reason::Unreachable, text),
        NoTarget::TimedOut(text) => Halt::errored(Reason::TimedOut, text),
        NoTarget::Denied(_) => Halt::skipped(Reason::NeedsIdentityA, format!("{missing}; {}", advice(given))),
        NoTarget::Setup(text) => Halt::errored(Reason::ProbeBug, text),
    }
}

/// The server answered the handshake and then not the listing.
fn unlisted(reply: &Reply, given: bool) -> Halt {
    match disposition::of(reply) {
        Disposition::Unclear(Unclear::Fault(fault @ Fault::TimedOut(_))) => {
            Halt::errored(Reason::TimedOut, format!("tools/list: {fault}"))
        }
        Disposition::Unclear(Unclear::Fault(fault @ (Fault::Unreachable(_) | Fault::Closed(_)))) => {
            Halt::errored(Reason::Unreachable, format!("tools/list: {fault}"))
        }
        Disposition::Refused(_) if matches!(reply.status, Some(401 | 403)) => Halt::skipped(
            Reason::NeedsIdentityA,
            format!("the server refuses tools/list to identity A; {}", advice(given)),
        ),
        Disposition::Refused(refusal) => {
            Halt::skipped(Reason::NoServerAnswered, format!("the server refuses tools/list: {refusal}"))
        }
        Disposition::Unclear(unclear) => Halt::errored(Reason::Unclear, format!("tools/list: {unclear}")),
        other => Halt::errored(Reason::Unclear, format!("tools/list was answered with `{}`", other.word())),
    }
}

const LONGEST_DETAIL: usize = 600;
const LISTED_AGAIN: usize = 3;
