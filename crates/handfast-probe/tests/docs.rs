//! The documents name everything that the probe can say.

use handfast_probe::verdict::Reason;

const VERDICTS: &str = include_str!("../../../docs/verdicts.md");

#[test]
fn every_reason_is_explained() {
    for reason in Reason::ALL {
        let row = format!("| `{}` |", reason.slug());
        assert!(VERDICTS.contains(&row), "docs/verdicts.md has no row for {}", reason.slug());
    }
}

#[test]
fn no_reason_is_explained_that_does_not_exist() {
    let (_, table) = VERDICTS.split_once("## Reasons").expect("a chapter");
    let (table, _) = table.split_once("## Further observations").expect("the next chapter");
    let named = table.lines().filter_map(|line| line.strip_prefix("| `")?.split_once('`')).map(|(slug, _)| slug);

    let unknown: Vec<&str> = named.filter(|slug| Reason::ALL.iter().all(|reason| reason.slug() != *slug)).collect();

    assert_eq!(unknown, [""; 0]);
}
