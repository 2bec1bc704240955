//! `handfast prove`: twelve directions, each with its evidence, and exit code 0 only when all of them hold.

mod support;

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
    let ran = ran(&["prove"]);

    assert_eq!(ran.code, 0, "{}", ran.stdout);
    let held: Vec<&str> = ran.stdout.lines().filter(|line| line.ends_with("holds")).collect();
    assert_eq!(held.len(), 12, "{}", ran.stdout);
    for (number, (line, direction)) in held.iter().zip(DIRECTIONS).enumerate() {
        assert!(line.starts_with(&format!("{:>2}. {direction}", number + 1)), "{line}");
    }
    assert_eq!(ran.stdout.lines().last(), Some("12 of 12 directions hold"));
    let claims: Vec<&str> = ran.stdout.lines().filter(|line| line.trim_start().starts_with("ok ")).collect();
    assert!(claims.len() >= 50, "each direction asserts its evidence; there are only {} claims", claims.len());
}

#[test]
fn one_transport_alone_has_its_six() {
    for (transport, directions) in [("http", &DIRECTIONS[..6]), ("stdio", &DIRECTIONS[6..])] {
        let ran = ran(&["prove", "--transport", transport]);

        assert_eq!(ran.code, 0);
        assert_eq!(ran.stdout.lines().last(), Some("6 of 6 directions hold"));
        for direction in directions {
            assert!(ran.stdout.contains(direction), "{direction}");
        }
    }
}

#[test]
fn json_tells_the_same_to_a_program() {
    let ran = ran(&["prove", "--format", "json"]);

    let written = ran.json();
    assert_eq!((ran.code, written["version"].as_u64(), written["held"].as_u64()), (0, Some(1), Some(12)));
    let directions = written["directions"].as_array().expect("a list");
    assert_eq!(directions.len(), 12);
    for direction in directions {
        assert_eq!(direction["holds"], true, "{direction}");
        assert_eq!(direction["checks"].as_array().map(Vec::len), Some(2), "{direction}");
        let claims = direction["claims"].as_array().expect("a list");
        assert!(claims.iter().all(|claim| claim["holds"] == true) && claims.len() >= 2, "{direction}");
    }
    let flawed = &directions[0]["checks"];
    assert_eq!((&flawed[0]["verdict"], &flawed[1]["verdict"]), (&"confirmed".into(), &"confirmed".into()));
}

#[test]
fn it_needs_no_terminal_and_prints_no_colour() {
    let ran = ran(&["prove", "--transport", "stdio"]);

    assert!(!ran.said().contains('\u{1b}'), "{}", ran.stdout);
}
