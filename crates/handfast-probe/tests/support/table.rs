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
    /// Every further check that does not say what is usual (see [`usual`]), by its whole id.
    pub(crate) further: &'t str,
}

impl<'t> Line<'t> {
    /// What the line says of one check: `verdict reason [severity] [+observation]`, or `refuted` alone.
    pub(crate) fn of(&self, check: &str) -> &'t str {
        match check {
            "handle-foreign-principal" => self.checks[0],
            "state-tampered" => self.checks[1],
            other if !has_a_column(other) => {
                let named = self.further.split("; ").find_map(|part| part.strip_prefix(other)?.strip_prefix(' '));
                named.unwrap_or_else(|| usual(other, self.checks))
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

/// What a further check says of most twins, by the beginning of its id; the longest that fits counts.
const USUAL: &[(&str, &str)] = &[
    ("state-outlives-expiry", "skipped needs-wait"),
    ("answers-", "skipped questions-name-nothing"),
    ("task-", "skipped no-task-returned"),
    ("handle-outlives-close", "skipped no-tool-ends-a-handle"),
    ("handle-repointed", "skipped no-tool-ends-a-handle"),
    ("handle-outlives-expiry", "skipped needs-wait"),
    ("handle-adopted", "refuted"),
    ("handle-oracle", "refuted"),
    ("handle-follows-session-header", "refuted"),
    ("ambient-shared", "skipped no-ambient-state"),
    ("design-", "refuted"),
    ("cursor-", "skipped no-cursor-given"),
];

/// Further checks that ask for HTTP, or that need two callers where the twins with sessions know one over stdio.
const HTTP_ONLY: &[&str] = &["handle-lost", "handle-follows-session-header", "response-misrouted", "ambient-shared"];

/// Checks that have their own column, or share that of their family.
fn has_a_column(id: &str) -> bool {
    ["handle-foreign-principal", "state-tampered", "challenge-missing"].contains(&id)
        || id.starts_with("session-")
        || id.starts_with("token-")
}

/// What a further check says where the table does not: what the first of its family says, where there was nothing to test;
/// else what it says of most twins, else what the first says, where that was skipped; else `refuted`.
fn usual<'t>(id: &str, firsts: [&'t str; 2]) -> &'t str {
    let of_most = USUAL.iter().filter(|(start, _)| id.starts_with(start)).max_by_key(|(start, _)| start.len());
    // What is advised of handles needs some as well.
    let first = [("handle-", 0), ("design-", 0), ("state-", 1)].iter().find(|(family, _)| id.starts_with(family));
    // Where nothing returns a state, nothing asks for an approval either.
    let asks = ["approval-", "decline-", "answers-", "asks-"].iter().any(|start| id.starts_with(start));
    if asks && firsts[1].starts_with("skipped") {
        return firsts[1];
    }
    match (of_most, first.map(|(_, at)| firsts[*at])) {
        // Where there is nothing to test, that is said of the whole family.
        (_, Some(first)) if first.starts_with("skipped no") => first,
        (Some((_, said)), _) => said,
        (None, Some(first)) if first.starts_with("skipped") => first,
        _ => "refuted",
    }
}

/// The sixth column, from what every check said, by its id. Over stdio the checks that ask for HTTP are left out.
pub(crate) fn further(cells: &[(String, String)], over_stdio: bool) -> String {
    let of = |id: &str| cells.iter().find(|(known, _)| known == id).map_or("", |(_, said)| said.as_str());
    let firsts = ["handle-foreign-principal", "state-tampered"].map(of);
    let is_usual = |id: &str, said: &str| match usual(id, firsts) {
        "refuted" => said.starts_with("refuted") && !said.contains('+'),
        // Of a skipped first its observations are its own.
        usual => said == usual || usual.strip_prefix(said).is_some_and(|rest| rest.starts_with(" +")),
    };
    let telling = cells.iter().filter(|(id, said)| {
        let untestable = over_stdio && HTTP_ONLY.contains(&id.as_str());
        !has_a_column(id) && !untestable && !is_usual(id, said)
    });
    telling.map(|(id, said)| format!("{id} {said}")).collect::<Vec<_>>().join("; ")
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
    let all = lines(table);
    let wrong: Vec<String> = all
        .iter()
        .filter_map(|line| {
            let (_, found) = seen.iter().find(|(twin, _)| twin == line.twin)?;
            // Over stdio there is one connection, no header, and one message after the other.
            let as_sound = over == "stdio" && ["binds-connection", "trusts-header", "writes-late"].contains(&line.twin);
            let line = if as_sound { all.iter().find(|line| line.twin == "sound")? } else { line };
            // Over stdio there are no session ids and no tokens, for any twin.
            let none = "skipped needs-http";
            let (sessions, tokens) = if over == "stdio" { (none, none) } else { (line.sessions, line.tokens) };
            let further: Vec<&str> =
                line.further.split("; ").filter(|part| over != "stdio" || !asks_for_http(part)).collect();
            let wanted = format!("{} | {sessions} | {tokens} | {}", line.checks.join(" | "), further.join("; "));
            let wanted = wanted.trim_end();
            (*found != wanted).then(|| format!("{} over {over}\n  expected {wanted}\n  found    {found}", line.twin))
        })
        .collect();
    assert_eq!(seen.len(), lines(table).len(), "every twin was probed over {over}");
    assert!(wrong.is_empty(), "\n{}", wrong.join("\n"));
}

fn asks_for_http(part: &str) -> bool {
    HTTP_ONLY.iter().any(|id| part.starts_with(&format!("{id} ")))
}

/// The table with what was seen in place of what it says, for a person to read and to commit.
pub(crate) fn rewritten(table: &str, seen: &[(String, String)]) -> String {
    let line = |line: &str| {
        let twin = line.split('|').next().unwrap_or_default().trim();
        let Some((_, found)) = seen.iter().find(|(known, _)| known == twin) else { return line.to_owned() };
        let cells: Vec<&str> = found.split('|').map(str::trim).collect();
        let [handle, state, sessions, tokens, ref further @ ..] = cells[..] else { return line.to_owned() };
        let tokens = if tokens == UNREAD { "unread" } else { tokens };
        let further = further.first().filter(|further| !further.is_empty());
        let further = further.map(|further| format!(" | {further}")).unwrap_or_default();
        format!("{twin:<26} | {handle:<57} | {state:<42} | {sessions} | {tokens}{further}")
    };
    let lines: Vec<String> = table.lines().map(line).collect();
    lines.join("\n") + "\n"
}
