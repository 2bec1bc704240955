//! `matrix.txt`: one line for each twin, with what the probe must say of it. Also read by the tests of the command line,
//! which hold stdio against the same lines.
#![allow(dead_code, reason = "each test file uses its part of this")]

/// One line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Line<'t> {
    pub(crate) twin: &'t str,
    /// `verdict reason [severity] [+observation]` of the checks of handles and of states.
    pub(crate) checks: [&'t str; 2],
    /// What all checks of sessions say over HTTP, or those of them that are not plainly refuted, each with its name.
    pub(crate) sessions: &'t str,
    /// The same of the checks of tokens.
    pub(crate) tokens: &'t str,
    /// Further checks of handles and states that do not say what the first of their family says, by their whole ids.
    pub(crate) further: &'t str,
}

impl<'t> Line<'t> {
    /// What the line says of one check: `verdict reason [severity] [+observation]`, or `refuted` alone.
    pub(crate) fn of(&self, check: &str) -> &'t str {
        match check {
            "handle-foreign-principal" => self.checks[0],
            "state-tampered" => self.checks[1],
            other if other.starts_with("handle-") || other.starts_with("state-") => {
                let first = self.checks[usize::from(other.starts_with("state-"))];
                let named = self.further.split("; ").find_map(|part| part.strip_prefix(other)?.strip_prefix(' '));
                named.unwrap_or(if first.starts_with("skipped") { first } else { "refuted" })
            }
            other => {
                let (name, cell) = match other.strip_prefix("session-") {
                    Some(name) => (name, self.sessions),
                    None => (other.strip_prefix("token-").unwrap_or(other), self.tokens),
                };
                if ["skipped", "errored"].iter().any(|verdict| cell.starts_with(verdict)) {
                    return cell;
                }
                let named = cell.split("; ").find_map(|part| part.strip_prefix(name)?.strip_prefix(' '));
                // Most twins have tokens that bear no signature.
                let signed = ["signed-tokens", "unverified-signature"].contains(&self.twin);
                named.unwrap_or(if other == "token-forged" && !signed {
                    "skipped no-signature-seen"
                } else {
                    "refuted"
                })
            }
        }
    }
}

/// What `unread` stands for.
const UNREAD: &str = "foreign-audience skipped nothing-was-refused; client-id-audience skipped nothing-was-refused; \
     expired skipped nothing-was-refused; absent-stronger skipped nothing-was-refused; in-query skipped nothing-was-refused";

/// Every line of a table.
pub(crate) fn lines(table: &str) -> Vec<Line<'_>> {
    let rows = table.lines().filter(|line| !line.starts_with('#') && !line.trim().is_empty());
    rows.map(|line| {
        let cells: Vec<&str> = line.split('|').map(str::trim).collect();
        let [twin, handle, state, sessions, tokens, ref further @ ..] = cells[..] else {
            panic!("not five columns, or six: {line}")
        };
        let further = further.first().copied().unwrap_or_default();
        let tokens = if tokens == "unread" { UNREAD } else { tokens };
        Line { twin, checks: [handle, state], sessions, tokens, further }
    })
    .collect()
}

/// Every twin has its line, and no line is of a twin that is gone.
pub(crate) fn assert_complete(table: &str) {
    let (listed, known): (Vec<&str>, Vec<&str>) = (
        lines(table).iter().map(|line| line.twin).collect(),
        handfast_twins::all().iter().map(|twin| twin.name).collect(),
    );
    assert_eq!(listed, known, "matrix.txt must list every twin once, in the order of `handfast twin --list`");
}

/// Holds what was seen against the table, and shows every line that differs.
pub(crate) fn assert_agrees(table: &str, over: &str, seen: &[(String, String)]) {
    let wrong: Vec<String> = lines(table)
        .iter()
        .filter_map(|line| {
            // Over stdio there are no session ids and no tokens, for any twin.
            let none = "skipped needs-http";
            let (sessions, tokens) = if over == "stdio" { (none, none) } else { (line.sessions, line.tokens) };
            let wanted = format!("{} | {sessions} | {tokens} | {}", line.checks.join(" | "), line.further);
            let wanted = wanted.trim_end();
            let (_, found) = seen.iter().find(|(twin, _)| twin == line.twin)?;
            (*found != wanted).then(|| format!("{} over {over}\n  expected {wanted}\n  found    {found}", line.twin))
        })
        .collect();
    assert_eq!(seen.len(), lines(table).len(), "every twin was probed over {over}");
    assert!(wrong.is_empty(), "\n{}", wrong.join("\n"));
}
