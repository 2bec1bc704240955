//! `docs/requirements.md` says what the specification asks for and which check tests it. The page and the catalogue are held
//! against each other.

#[path = "support/page.rs"]
mod page;

use std::collections::BTreeSet;

use handfast_probe::checks;

const PAGE: &str = include_str!("../../../docs/requirements.md");
const STRENGTHS: [&str; 4] = ["MUST", "MUST NOT", "SHOULD", "SHOULD NOT"];

/// One sentence of the specification.
struct Row {
    chapter: &'static str,
    sentence: String,
    strength: &'static str,
    /// Where the page of the specification is.
    url: &'static str,
    ids: Vec<&'static str>,
    /// What stands behind the ids, or in their place.
    remark: &'static str,
}

#[test]
fn every_row_says_how_strong_it_is_and_where_it_stands() {
    for row in rows() {
        let Row { chapter, sentence, strength, url, .. } = &row;
        if *chapter == "Guidance" {
            assert_eq!(*strength, "guidance", "{sentence}");
            assert!(!STRENGTHS.iter().any(|word| sentence.contains(word)), "this is no guidance: {sentence}");
        } else {
            assert!(STRENGTHS.contains(strength), "{chapter}: `{strength}` of {sentence}");
            let said = sentence.matches(strength).count();
            let denied = sentence.matches(&format!("{strength} NOT")).count();
            assert!(said > denied, "{chapter}: there is no {strength} in: {sentence}");
        }
        let of_this_revision = !url.contains("/2025-");
        assert_eq!(of_this_revision, !chapter.starts_with("Sessions of 2025-11-25"), "{chapter}: {url}");
    }
}

#[test]
fn no_sentence_stands_here_twice() {
    let mut seen = BTreeSet::new();
    for row in rows() {
        assert!(seen.insert((row.url, row.sentence.clone())), "{}", row.sentence);
    }
}

#[test]
fn every_row_has_checks_or_a_reason() {
    for Row { sentence, ids, remark, .. } in rows() {
        assert!(!ids.is_empty() || remark.ends_with('.'), "{sentence}: neither a check nor a reason: `{remark}`");
        assert_eq!(ids.iter().collect::<BTreeSet<_>>().len(), ids.len(), "{sentence}: {ids:?}");
    }
}

#[test]
fn every_id_is_a_check() {
    let known: Vec<&str> = checks::all().map(|check| check.id).collect();
    // In a remark as well, what looks like the id of a check is one.
    let in_passing = page::like_ids(PAGE, &known);
    let named: BTreeSet<&str> = rows().into_iter().flat_map(|row| row.ids).chain(in_passing).collect();
    let unknown: Vec<&str> = named.into_iter().filter(|id| !known.contains(id)).collect();
    assert!(unknown.is_empty(), "no such checks: {unknown:?}");
}

#[test]
fn every_check_stands_in_a_row() {
    let named: BTreeSet<&str> = rows().into_iter().flat_map(|row| row.ids).collect();
    let absent: Vec<&str> = checks::all().map(|check| check.id).filter(|id| !named.contains(id)).collect();
    assert!(absent.is_empty(), "docs/requirements.md has no row for {absent:?}");
}

/// What a check quotes stands in a row that names the check, word for word, and on the page that the check says. An ellipsis
/// joins parts.
#[test]
fn every_quotation_stands_in_a_row_of_its_check() {
    let rows = rows();
    for check in checks::all() {
        let of_this_revision = check.spec_url.contains("/2026-07-28/");
        if !of_this_revision && !check.spec_url.contains("/2025-11-25/") {
            continue;
        }
        for part in check.spec.split('…').map(plain) {
            let part = part.trim_end_matches(['.', ';', ':', ',']);
            // The checks of tokens quote the older revision, which says the same.
            let places = rows
                .iter()
                .filter(|row| row.sentence.contains(part))
                .filter(|row| !of_this_revision || page_of(row.url) == page_of(check.spec_url));
            let places: Vec<&Row> = places.collect();
            let elsewhere: Vec<_> = places.iter().map(|row| (&row.sentence, &row.ids)).collect();
            assert!(
                places.iter().any(|row| row.ids.contains(&check.id)),
                "{}: no row of {} that names it has `{part}`; others: {elsewhere:#?}",
                check.id,
                check.spec_url,
            );
        }
    }
}

#[test]
fn quotations_are_compared_without_what_markdown_adds() {
    assert_eq!(plain("servers **MUST**\n  protect `it`  "), "servers MUST protect it");
    assert_eq!(
        page_of("https://host/specification/2026-07-28/basic/index#statelessness"),
        page_of("https://host/specification/2026-07-28/basic")
    );
    assert_ne!(page_of("https://host/basic/patterns/mrtr"), page_of("https://host/basic/patterns/progress"));
}

/// Every row of every table, in order.
fn rows() -> Vec<Row> {
    let rows: Vec<Row> = page::rows(PAGE)
        .into_iter()
        .map(|(chapter, cells)| {
            let [sentence, strength, page, tested] = cells[..] else { panic!("not four cells: {cells:?}") };
            let (ids, remark) = page::named(tested);
            let strength = strength.trim_end_matches(" °");
            Row { chapter, sentence: plain(sentence), strength, url: link(page), ids, remark }
        })
        .collect();
    assert!(rows.len() > 100, "only {} rows were read", rows.len());
    rows
}

/// Where `[label]` leads.
fn link(label: &str) -> &'static str {
    let definition = format!("{label}: ");
    let url = PAGE.lines().find_map(|line| line.strip_prefix(definition.as_str()));
    let url = url.unwrap_or_else(|| panic!("{label} leads nowhere"));
    let known = ["https://modelcontextprotocol.io/", "https://github.com/modelcontextprotocol/"];
    assert!(known.iter().any(|host| url.starts_with(host)), "{url}");
    url
}

/// A text as it reads, without emphasis, code marks and the breaking of lines.
fn plain(text: &str) -> String {
    text.replace(['`', '*'], "").replace('’', "'").split_whitespace().collect::<Vec<_>>().join(" ")
}

/// The page of a URL: without the place in it, and by one of its two names.
fn page_of(url: &str) -> &str {
    let page = url.split('#').next().unwrap_or(url).trim_end_matches('/');
    page.strip_suffix("/index").unwrap_or(page)
}
