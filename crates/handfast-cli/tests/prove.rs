//! `handfast prove`: twelve directions, each with its evidence, and exit code 0 only when all of them hold; and a table of
//! every twin and every check.

mod support;

use handfast_probe::checks;
use serde_json::Value;
use support::ran;

const DIRECTIONS: [&str; 12] = [
    "http  flawed",
    "http  sound",
    "http  noguard",
    "http  opaque",
    "http  legacy",
    "http  nothing listening",
    "stdio flawed",
    "stdio sound",
    "stdio noguard",
    "stdio opaque",
    "stdio legacy",
    "stdio cannot be run",
];

#[test]
fn twelve_directions_hold() {
    let ran = ran(&["prove", "--brief"]);

    assert_eq!(ran.code, 0, "{}", ran.stdout);
    let held: Vec<&str> = ran.stdout.lines().filter(|line| line.ends_with("holds")).collect();
    assert_eq!(held.len(), 12, "{}", ran.stdout);
    for (number, (line, direction)) in held.iter().zip(DIRECTIONS).enumerate() {
        assert!(line.starts_with(&format!("{:>2}. {direction}", number + 1)), "{line}");
    }
    assert_eq!(ran.stdout.lines().last(), Some("12 of 12 directions hold"));
    let claims: Vec<&str> = ran.stdout.lines().filter(|line| line.trim_start().starts_with("ok ")).collect();
    // What cannot be tried there is counted, check by check only for a program.
    let skipped: Vec<&str> = ran.stdout.lines().filter(|line| line.contains("skipped  ")).collect();
    assert!(skipped.len() < 200 && skipped.iter().any(|line| line.contains("others  [needs-http]")), "{skipped:?}");
    assert!(claims.len() >= 50, "each direction asserts its evidence; there are only {} claims", claims.len());
}

#[test]
fn one_transport_alone_has_its_six() {
    for (transport, directions) in [("http", &DIRECTIONS[..6]), ("stdio", &DIRECTIONS[6..])] {
        let ran = ran(&["prove", "--brief", "--transport", transport]);

        assert_eq!(ran.code, 0);
        assert_eq!(ran.stdout.lines().last(), Some("6 of 6 directions hold"));
        for direction in directions {
            assert!(ran.stdout.contains(direction), "{direction}");
        }
    }
}

#[test]
fn json_tells_the_same_to_a_program() {
    let ran = ran(&["prove", "--brief", "--format", "json"]);

    let written = ran.json();
    assert_eq!((ran.code, written["version"].as_u64(), written["held"].as_u64()), (0, Some(1), Some(12)));
    let directions = written["directions"].as_array().expect("a list");
    assert_eq!(directions.len(), 12);
    for direction in directions {
        assert_eq!(direction["holds"], true, "{direction}");
        assert_eq!(direction["checks"].as_array().map(Vec::len), Some(checks::all().count()), "{direction}");
        let claims = direction["claims"].as_array().expect("a list");
        assert!(claims.iter().all(|claim| claim["holds"] == true) && claims.len() >= 2, "{direction}");
    }
    let flawed = directions[0]["checks"].as_array().expect("a list");
    for id in ["handle-foreign-principal", "state-tampered"] {
        assert!(flawed.iter().any(|check| check["id"] == id && check["verdict"] == "confirmed"), "{id}");
    }
}

#[test]
fn it_needs_no_terminal_and_prints_no_colour() {
    let ran = ran(&["prove", "--brief", "--transport", "stdio"]);

    assert!(!ran.said().contains('\u{1b}'), "{}", ran.stdout);
}

/// The cells of a line of the table.
fn cells<'t>(table: &'t str, twin: &str) -> Vec<&'t str> {
    let line = table.lines().find(|line| line.split_whitespace().next() == Some(twin));
    line.unwrap_or_else(|| panic!("no line for {twin}")).split_whitespace().skip(1).collect()
}

#[test]
fn the_table_shows_every_twin_and_every_check_over_every_transport() {
    let ran = ran(&["prove"]);

    assert_eq!(ran.code, 0, "{}", ran.stdout);
    let (_, table) = ran.stdout.split_once("Every twin and every check").expect("a table");
    for twin in handfast_twins::all().iter().filter(|twin| !["http", "stdio"].contains(&twin.name)) {
        let cells = cells(table, twin.name);
        assert_eq!(cells.len(), 2, "{}: {cells:?}", twin.name);
        for cell in cells {
            assert_eq!(cell.chars().count(), checks::all().count(), "{}: {cell}", twin.name);
            assert!(cell.chars().all(|letter| "Cr.E".contains(letter)), "{}: {cell}", twin.name);
        }
    }
    for check in checks::all() {
        let named = |line: &str| line.split_once(' ').is_some_and(|(letter, id)| letter.len() == 1 && id == check.id);
        assert!(table.lines().any(named), "{}", check.id);
    }
    // Over HTTP, and over stdio.
    for (twin, check, letters) in [
        ("flawed", "handle-foreign-principal", "CC"),
        ("flawed", "state-tampered", "CC"),
        ("flawed", "session-foreign-principal", ".."),
        ("sound", "handle-foreign-principal", "rr"),
        ("sessions", "session-foreign-principal", "r."),
        ("dual-era-unbound", "session-foreign-principal", "C."),
        ("dual-era-unbound", "handle-foreign-principal", "rr"),
        ("binds-token", "handle-overbound", "CC"),
        ("binds-connection", "handle-lost", "C."),
    ] {
        let at = checks::all().position(|known| known.id == check).expect("a check");
        let seen: String = cells(table, twin).iter().filter_map(|cell| cell.chars().nth(at)).collect();
        assert_eq!(seen, letters, "{twin}: {check}");
    }
    assert_eq!(ran.stdout.lines().last(), Some("12 of 12 directions hold"));
}

#[test]
fn the_table_is_there_for_a_program_as_well() {
    let written = ran(&["prove", "--transport", "http", "--format", "json"]).json();

    let lines = written["matrix"].as_array().expect("a list");
    assert_eq!(lines.len(), handfast_twins::all().len());
    let of = |twin: &str| lines.iter().find(|line| line["twin"] == twin).expect("a line");
    assert_eq!(of("unbound-get")["checks"]["session-foreign-principal"], "confirmed");
    assert_eq!(of("unbound-get")["transport"], "http");
    for line in lines {
        assert_eq!(line["checks"].as_object().map(serde_json::Map::len), Some(checks::all().count()), "{line}");
    }
    assert!(!lines.iter().any(|line| line["checks"] == Value::Null));
}
