//! Pages with tables that name checks: how their rows and cells are read.

/// The cells of every row of every table, each with the heading above it, but for the heads of the tables.
pub(crate) fn rows(page: &str) -> Vec<(&str, Vec<&str>)> {
    let mut heading = "";
    let mut rows = Vec::new();
    let mut above: Option<(&str, Vec<&str>)> = None;
    for line in page.lines() {
        if line.starts_with("##") {
            heading = line.trim_start_matches('#').trim();
        }
        if line.starts_with("|-") {
            // What stands above the line was the head.
            above = None;
            continue;
        }
        rows.extend(above.take());
        let cells = line.strip_prefix("| ").and_then(|line| line.strip_suffix(" |"));
        above = cells.map(|cells| (heading, cells.split(" | ").collect()));
    }
    rows.extend(above);
    rows
}

/// The words in code marks at the beginning of a cell, and what stands behind them.
pub(crate) fn named(cell: &str) -> (Vec<&str>, &str) {
    let (mut words, mut rest) = (Vec::new(), cell);
    while let Some((word, behind)) = rest.strip_prefix('`').and_then(|inside| inside.split_once('`')) {
        words.push(word);
        rest = behind.strip_prefix(", ").unwrap_or(behind);
    }
    (words, rest.trim_start_matches([':', ',']).trim())
}

/// The words in code marks, anywhere, that look like ids of the families of `ids`.
pub(crate) fn like_ids<'p>(page: &'p str, ids: &[&str]) -> Vec<&'p str> {
    let is_family = |word: &str| ids.iter().any(|id| id.split('-').next() == Some(word));
    let is_slug = |word: &str| word.bytes().all(|byte| byte.is_ascii_lowercase() || b"-0123456789".contains(&byte));
    let code = page.split('`').skip(1).step_by(2);
    code.filter(|word| word.split_once('-').is_some_and(|(first, rest)| is_family(first) && is_slug(rest))).collect()
}
